"""A rollback that could not stop blue for good: a command starts it all the same, a person is asked again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.declared_lifecycles import ManualLifecycle
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.journal import Phase
from kafka_rescale.lifecycle.factory import lifecycle_of
from kafka_rescale.operations.rescale import Rescale
from kafka_rescale.operations.rollback import roll_back

from tests.support.growing_steps import APPLICATION, CONNECTION
from tests.support.growing_world import NAME, OWNER, GrowingWorld

MANUAL = APPLICATION.model_copy(update={"lifecycle": ManualLifecycle(type="manual", timeout_seconds=1)})


@pytest.fixture
def world() -> GrowingWorld:
    """Somebody has closed blue, as the cutover has asked; its members are still in the group."""
    found = GrowingWorld(running=False)
    found.rescale.advance(Phase.QUIESCING, pause_started_ms=1, stop_asked=True)
    return found


def test_members_of_a_program_that_a_person_has_closed_are_not_taken_for_one_that_runs(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def has_members(_: str) -> bool:
        if "PLEASE START" in caplog.text:
            world.running = world.members = True
        return world.members

    by_hand = lifecycle_of(MANUAL, has_members)
    monkeypatch.setattr(Rescale, "open", lambda *_: replace(world.rescale, application=MANUAL, lifecycle=by_hand))
    with pytest.raises(Outage, match=f"nobody did it within 1 s: STOP every instance of {NAME}"):
        roll_back(MANUAL, CONNECTION, owner=OWNER, reason="a test")
    assert world.journal.phase is Phase.ROLLING_BACK
    world.members = False
    assert roll_back(MANUAL, CONNECTION, owner=OWNER, reason="again").is_done
    assert world.running
    assert world.journal.phase is Phase.ROLLED_BACK


def test_what_a_command_could_not_stop_is_started_all_the_same(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Any) -> None:
        raise Outage("command `stop`", found="exit code 1", expected="0", remedy="Look at it.")

    monkeypatch.setattr(world, "_stop", fails)
    monkeypatch.setattr(Rescale, "open", lambda *_: world.rescale)
    assert roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a test").is_done
    assert world.running
