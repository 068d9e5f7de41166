"""In place, most of what the rehearsal has not seen is checked before the pause, and the rest within its limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from threading import Event
from typing import Any

import pytest
from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.errors import ClusterOutage, Outage, UnsafeState
from kafka_rescale.kafka.copy.units import CopyUnit
from kafka_rescale.operations.cutover import cutover, growing

from tests.support.expansion import growing_world
from tests.support.expansion.growing_steps import APPLICATION, cut_over, use, without_brokers
from tests.support.expansion.growing_world import BEFORE, GrowingWorld

STATE = "orders-app-per-customer-changelog"
Looks = dict[TopicPartition, list[tuple[int, int]]]
NO_OFFSETS: Looks = {}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> GrowingWorld:
    """An application that has written 5 records per partition since its rehearsal. It writes one as it stops."""
    without_brokers(monkeypatch)
    world = use(GrowingWorld(), monkeypatch)
    world.ends[STATE] = {p: end + 5 for p, end in world.ends[STATE].items()}
    stop = world._stop

    def stops(instance: Any) -> None:
        if world.running:
            world.ends[STATE] = {p: end + 1 for p, end in world.ends[STATE].items()}
        stop(instance)

    monkeypatch.setattr(world, "_stop", stops)
    return world


@pytest.fixture
def hanging() -> Iterator[Event]:
    """Ends what hangs, at the end of the test at the latest."""
    over = Event()
    yield over
    over.set()


def _limit_pause(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    limited = APPLICATION.model_copy(update={"max_pause_seconds": seconds})
    monkeypatch.setattr(growing_world, "in_place_application", lambda: limited)


def test_only_what_is_written_at_last_is_left_for_the_pause(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead, within = dict(NO_OFFSETS), dict(NO_OFFSETS)

    def look(_: Any, unit: CopyUnit, start: int, end: int, *__: Any) -> None:
        (ahead if world.running else within).setdefault(unit.source, []).append((start, end))

    monkeypatch.setattr(growing, "rehearse_unit", look)
    cut_over()
    assert ahead == {(STATE, p): [(10 + p, 15 + p)] for p in range(BEFORE)}
    assert {of: seen for of, seen in within.items() if of[0] == STATE} == {
        (STATE, p): [(15 + p, 16 + p)] for p in range(BEFORE)
    }


def test_without_a_rehearsal_the_whole_state_is_checked_before_the_pause(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.state = world.state.model_copy(update={"results": {}})
    ahead = dict(NO_OFFSETS)

    def look(_: Any, unit: CopyUnit, start: int, end: int, *__: Any) -> None:
        if world.running:
            ahead.setdefault(unit.source, []).append((start, end))

    monkeypatch.setattr(growing, "rehearse_unit", look)
    cut_over()
    assert {of: seen for of, seen in ahead.items() if of[0] == STATE} == {
        (STATE, p): [(0, 15 + p)] for p in range(BEFORE)
    }
    assert {topic for topic, _ in ahead} == {move.source for move in world.plan.changelogs}


def test_what_was_written_during_a_long_look_is_looked_at_before_the_pause_as_well(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "NEAR_SECONDS", 0.1)
    ahead = dict(NO_OFFSETS)

    def look(_: Any, unit: CopyUnit, start: int, end: int, *__: Any) -> None:
        if not world.running:
            return
        if unit.source not in ahead:
            time.sleep(0.2)
            world.ends[STATE] = {**world.ends[STATE], unit.partition: end + 2}
        ahead.setdefault(unit.source, []).append((start, end))

    monkeypatch.setattr(growing, "rehearse_unit", look)
    cut_over()
    assert ahead == {(STATE, p): [(10 + p, 15 + p), (15 + p, 17 + p)] for p in range(BEFORE)}


def test_a_rest_that_takes_too_long_ends_the_pause_at_its_limit(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch, hanging: Event
) -> None:
    """Threads are told to end. But none is waited for, because it may hang in a request."""
    _limit_pause(monkeypatch, 1.0)
    told = Event()

    def look(*given: Any) -> None:
        if not world.running:
            hanging.wait(timeout=60)
            with pytest.raises(CancelledError):
                given[-1]()
            told.set()

    monkeypatch.setattr(growing, "rehearse_unit", look)
    with pytest.raises(Outage, match="max_pause_seconds"):
        cut_over()
    assert not hanging.is_set()
    assert world.running
    assert world.journal.phase is Phase.ROLLED_BACK
    hanging.set()
    assert told.wait(timeout=60)


def test_state_that_can_not_be_checked_in_time_is_found_before_anything_is_stopped(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch, hanging: Event
) -> None:
    _limit_pause(monkeypatch, 0.2)
    monkeypatch.setattr(growing, "AHEAD_SECONDS", 0.2)
    monkeypatch.setattr(growing, "rehearse_unit", lambda *_: hanging.wait(timeout=60))
    with pytest.raises(Outage, match="too many unrehearsed records to check within 0 s"):
        cut_over()
    assert world.running
    assert (world.journal.phase, world.journal.stop_asked) == (Phase.ROLLED_BACK, False)


def test_what_is_written_faster_than_it_is_checked_is_found_before_anything_is_stopped(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "NEAR_SECONDS", 0.0)
    _limit_pause(monkeypatch, 0.1)

    def look(_: Any, unit: CopyUnit, __: int, end: int, *___: Any) -> None:
        time.sleep(0.2)
        world.ends[STATE] = {**world.ends[STATE], unit.partition: end + 2}

    monkeypatch.setattr(growing, "rehearse_unit", look)
    with pytest.raises(Outage, match="too many unrehearsed records"):
        cut_over()
    assert world.running
    assert (world.journal.phase, world.journal.stop_asked) == (Phase.ROLLED_BACK, False)


def test_after_an_outage_what_was_checked_is_not_checked_again(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = dict(NO_OFFSETS)
    away = [ClusterOutage("brokers", found="nothing", expected="an answer", remedy="Wait.")]
    others = Event()

    def look(_: Any, unit: CopyUnit, start: int, end: int, *__: Any) -> None:
        if world.running and unit.partition == 0 and away:
            others.wait(timeout=60)
            raise away.pop()
        looks.setdefault(unit.source, []).append((start, end))

    wait = growing.wait

    def noted(futures: Any, **_: Any) -> Any:
        done, left = wait(futures, timeout=0.1)
        if len(left) == 1:
            others.set()
        return done, left

    monkeypatch.setattr(growing, "wait", noted)
    monkeypatch.setattr(growing, "rehearse_unit", look)
    cut_over()
    assert {p: looks[STATE, p][0] for p in range(BEFORE)} == {p: (10 + p, 15 + p) for p in range(BEFORE)}
    assert {p: len(looks[STATE, p]) for p in range(BEFORE)} == dict.fromkeys(range(BEFORE), 2)


def test_a_record_that_can_not_be_moved_is_found_before_anything_is_stopped(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise UnsafeState("a record", found="a timestamp of 0", expected="a real one", remedy="None.")

    monkeypatch.setattr(growing, "rehearse_unit", refuse)
    with pytest.raises(UnsafeState, match="a timestamp of 0"):
        cut_over()
    assert world.running
    assert (world.journal.phase, world.journal.stop_asked) == (Phase.ROLLED_BACK, False)


@pytest.mark.parametrize("seconds", [0.0, 0.4])
def test_a_look_that_took_its_time_leaves_the_next_steps_theirs(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """An approved run of days is not rolled back because of one request that was not answered."""
    monkeypatch.setattr(cutover, "READY_SECONDS", 0.3)
    monkeypatch.setattr(growing, "rehearse_unit", lambda *_: time.sleep(seconds if world.running else 0))
    away = [ClusterOutage("brokers", found="no answer", expected="one", remedy="Wait.")]
    grows = cutover.assert_may_grow

    def once(*asked: Any) -> None:
        if away:
            raise away.pop()
        grows(*asked)

    monkeypatch.setattr(cutover, "assert_may_grow", once)
    cut_over()
    assert world.journal.is_promoted
