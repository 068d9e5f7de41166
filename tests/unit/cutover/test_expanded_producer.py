"""The cutover asks before the pause whether an application that it will hold as a producer is being expanded."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.operations.expansion import producers

from tests.support.application_files import CHAIN
from tests.support.expansion import growing_world
from tests.support.expansion.growing_steps import cut_over, use, without_brokers
from tests.support.expansion.growing_world import GrowingWorld
from tests.support.plans import plan_for

INPUTS = [{"topic": "orders", "policy": "paused", "producers": {"application": "upstream"}}]


def test_it_is_refused_before_anything_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Application.model_validate({**CHAIN, "mode": "in_place", "inputs": INPUTS})
    monkeypatch.setattr(growing_world, "in_place_application", lambda: held)
    state = ControlState(journal=Journal(plan=plan_for("upstream"), phase=Phase.WARMING))
    monkeypatch.setattr(producers, "ControlTopic", lambda *_: SimpleNamespace(read=lambda: state))
    without_brokers(monkeypatch)
    world = use(GrowingWorld(), monkeypatch)
    with pytest.raises(UnsafeState, match="no expansion while it is held as the producer of orders-app"):
        cut_over()
    assert world.running
    assert (world.journal.phase, world.journal.pause_started_ms) == (Phase.ROLLED_BACK, 0)
