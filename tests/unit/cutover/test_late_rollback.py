"""A person's rollback that begins late ends no attempt that the person could not mean."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.operators import base, closing
from kafka_rescale.airflow.operators.closing import RollBackOperator
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.expansion.late_words import CLOCK_SKEW_MS
from kafka_rescale.operations.expansion.rescale import Rescale

from tests.support.expansion.growing_steps import APPLICATION, CONNECTION, without_brokers
from tests.support.expansion.growing_world import GrowingWorld

NOON = 1_795_608_000_000


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> GrowingWorld:
    without_brokers(monkeypatch)
    made = GrowingWorld()
    monkeypatch.setattr(Rescale, "open", lambda *of: replace(made.rescale, owner=of[2]))
    monkeypatch.setattr(base, "airflow_of", lambda _: "")
    monkeypatch.setattr(closing, "failed_tasks", lambda _: [])
    monkeypatch.setattr(RollBackOperator, "application", lambda _: APPLICATION)
    monkeypatch.setattr(RollBackOperator, "connection", lambda *_: CONNECTION)
    return made


def _begun_at(world: GrowingWorld, ms: int) -> None:
    """Let the attempt begin at a time. Its application is stopped by now."""
    journal = world.journal.model_copy(update={"begun_ms": ms, "attempt": 8})
    world.state = world.state.model_copy(update={"journal": journal})
    world.rescale.advance(Phase.QUIESCING, pause_started_ms=1, stop_asked=True)


def _asked_at_noon() -> dict[str, Any]:
    task = RollBackOperator(task_id="roll_back", application_file="x.yaml", reason="why", take_over=True)
    after = datetime.fromtimestamp(NOON / 1000, UTC)
    run = SimpleNamespace(dag_id="rollback_x", run_id="r", triggering_user_name="anna", run_after=after)
    return task.execute({"dag_run": run})


def test_the_retry_of_a_rollback_leaves_the_next_attempt_alone(world: GrowingWorld) -> None:
    """An earlier try has ended attempt 7. It also leaves a run alone that waited on a paused DAG for weeks."""
    _begun_at(world, NOON + CLOCK_SKEW_MS + 1)
    before = (world.journal, world.state.lease)
    with pytest.raises(Refused, match=r"attempt 8, which began Wed .*, after this was asked for at Wed .*again"):
        _asked_at_noon()
    assert (world.journal, world.state.lease) == before


def test_the_attempt_that_was_meant_is_rolled_back_however_late(world: GrowingWorld) -> None:
    _begun_at(world, NOON)
    assert _asked_at_noon()["is_done"]
    assert world.journal.phase is Phase.ROLLED_BACK
    assert world.running


def test_clocks_that_differ_keep_nobody_from_starting_a_stopped_application(world: GrowingWorld) -> None:
    """The worker that has begun the attempt may be ahead of the API server, where the form was sent."""
    _begun_at(world, NOON + CLOCK_SKEW_MS)
    assert _asked_at_noon()["is_done"]
    assert world.running


def test_an_attempt_of_an_earlier_version_has_no_known_begin_and_is_rolled_back(world: GrowingWorld) -> None:
    _begun_at(world, 0)
    assert _asked_at_noon()["is_done"]
