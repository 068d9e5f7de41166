"""A rollback that is tried again, or beside another one: blue is stopped once, and then left as it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.application.lifecycles import ManualLifecycle
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.errors import Fenced, Outage
from kafka_rescale.lifecycle.manual import Person
from kafka_rescale.operations.cutover import quiesce
from kafka_rescale.operations.expansion import producers, rollback
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.rollback import RollBack, roll_back

from tests.support.expansion.gate_world import Killed
from tests.support.expansion.growing_steps import APPLICATION, CONNECTION, steps, use, without_brokers
from tests.support.expansion.growing_world import OWNER, GrowingWorld


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> GrowingWorld:
    """A cutover that has asked blue to stop."""
    without_brokers(monkeypatch)
    found = GrowingWorld(running=False, members=False)
    found.rescale.advance(Phase.QUIESCING, pause_started_ms=1, stop_asked=True)
    monkeypatch.setattr(Rescale, "open", lambda *_: found.rescale)
    return found


@pytest.fixture
def stops(world: GrowingWorld, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """One entry for each stop of blue."""
    found: list[Any] = []
    stop: Callable[[Any], None] = world._stop

    def counted(instance: Any) -> None:
        found.append(instance)
        stop(instance)

    monkeypatch.setattr(world, "_stop", counted)
    return found


def tried() -> RollBack:
    return roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a test")


def fails(*_: Any) -> None:
    raise Outage("command", found="exit code 1", expected="0", remedy="Look at it.")


def test_what_a_person_has_started_by_hand_is_left_running(
    world: GrowingWorld, stops: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(world, "_start", fails)
        for _ in range(3):
            with pytest.raises(Outage):
                tried()
    world.running = world.members = True
    assert tried().is_done
    assert len(stops) == 1
    assert world.running


def test_producers_that_can_not_be_started_do_not_take_blue_down_again_and_again(
    world: GrowingWorld, stops: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producers, "release", fails)
    for _ in range(3):
        with pytest.raises(Outage):
            tried()
        assert world.running
    assert len(stops) == 1


def test_a_stop_that_fails_is_tried_again_and_blue_is_started_all_the_same(
    world: GrowingWorld, stops: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(world, "_stop", fails)
        assert tried().is_done
    assert world.running
    assert world.journal.phase is Phase.ROLLED_BACK
    assert not world.journal.stopped_again


def test_a_person_who_does_not_stop_blue_is_waited_for_only_for_a_moment(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world.running = world.members = True
    manual = ManualLifecycle(type="manual", instructions="the dashboard", timeout_seconds=2)
    by_hand = replace(world.rescale, lifecycle=Person(manual, lambda _: True))
    monkeypatch.setattr(Rescale, "open", lambda *_: by_hand)
    monkeypatch.setattr(rollback, "STOP_SECONDS", 0.1)
    assert tried().is_done
    assert "PLEASE STOP every instance of orders-app" in caplog.text
    assert "although the complete stop before that has failed" in caplog.text
    assert "Timed out after 0.1 s waiting for a person" in caplog.text
    assert not world.journal.stopped_again


@pytest.mark.parametrize("begun", [False, True], ids=["over", "begun again"])
def test_the_slower_of_two_rollbacks_leaves_alone_what_the_faster_one_has_started(
    world: GrowingWorld, stops: list[Any], monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    """A cutover rolls itself back, and Airflow has begun the task ``roll_back`` of the same run."""

    def slow(_: Rescale) -> None:
        monkeypatch.setattr(producers, "release", lambda _: None)
        assert tried().is_done
        if begun:
            world.begin_again()

    monkeypatch.setattr(producers, "release", slow)
    said = tried()
    assert (said.is_done, said.was_done_before) == (True, True)
    assert ("attempt 2 has begun" in said.told) is begun
    assert len(stops) == 1
    assert world.running
    assert (world.journal.phase, world.journal.attempt) == (
        (Phase.WARMING, 2) if begun else (Phase.ROLLED_BACK, 1)
    )


def test_the_slower_of_two_rollbacks_starts_what_the_faster_one_has_only_stopped(
    world: GrowingWorld, stops: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise Killed

    def slow(_: Rescale) -> None:
        with monkeypatch.context() as faster:
            faster.setattr(producers, "release", lambda _: None)
            faster.setattr(world, "_start", killed)
            with pytest.raises(Killed):
                tried()

    monkeypatch.setattr(producers, "release", slow)
    assert tried().is_done
    assert len(stops) == 1
    assert world.running
    assert world.journal.phase is Phase.ROLLED_BACK


@pytest.mark.parametrize("begun", [False, True], ids=["over", "begun again"])
def test_at_whichever_call_another_rollback_comes_first_blue_runs_in_the_end(
    monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    """Also at the call of ``stop``: what is stopped late is started again."""
    without_brokers(monkeypatch)
    found: list[tuple[Phase, int]] = []
    for at in range(1, 100):
        world = GrowingWorld(running=False, members=False)
        world.rescale.advance(Phase.QUIESCING, pause_started_ms=1, stop_asked=True)

        def faster(world: GrowingWorld = world) -> None:
            assert tried().is_done
            if begun:
                world.begin_again()

        world.calls, world.freezes_at, world.meanwhile = 0, at, faster
        use(world, monkeypatch)
        with suppress(Fenced):
            tried()
        assert world.running
        found.append((world.journal.phase, world.journal.attempt))
        if world.freezes_at:
            break
    # A rollback that has read nothing yet rolls back the attempt that it finds. In the last world it is alone.
    first, *others, alone = found
    assert first == (Phase.ROLLED_BACK, 2 if begun else 1)
    assert set(others) == {(Phase.WARMING, 2) if begun else (Phase.ROLLED_BACK, 1)}
    assert alone == (Phase.ROLLED_BACK, 1)


def test_an_error_that_nobody_has_foreseen_starts_blue_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def surprise(*_: Any) -> None:
        raise ZeroDivisionError

    without_brokers(monkeypatch)
    world = use(GrowingWorld(), monkeypatch)
    monkeypatch.setattr(quiesce, "prove_gone", surprise)
    with pytest.raises(ZeroDivisionError):
        steps(world)
    assert world.running
    assert world.journal.phase is Phase.ROLLED_BACK
