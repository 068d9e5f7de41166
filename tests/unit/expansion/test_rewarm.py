"""Green restores again before a switch that was waited for: when, how, and what a killed process leaves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.triggers.switch import is_over
from kafka_rescale.core.application.windows import CutoverWindows
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Order, Switch
from kafka_rescale.core.control.warmth import Warmth
from kafka_rescale.core.errors import Fenced, UnsafeState
from kafka_rescale.core.expansion.prewarming import AGAIN, EVERYTHING, KEEP, gate_group, remark
from kafka_rescale.core.expansion.rewarming import AHEAD_MS, MARGIN_MS, is_due
from kafka_rescale.core.expansion.switch_wait import told_switch
from kafka_rescale.operations.expansion import behind_gate, prewarm, rewarm
from kafka_rescale.operations.expansion import warm_up_gate as gate
from kafka_rescale.operations.expansion.rescale import Rescale

from tests.support.expansion.gate_world import ENDS, GREEN, PLAN, TOPIC, GateWorld, killed_at_each_call
from tests.support.small_application import application

NOON = 1_795_608_000_000
"""25 November 2026, 12:00 UTC."""
HOUR = 3_600_000
NIGHTLY = CutoverWindows(windows=["02:00-05:00"])
COLD = Warmth(offsets=10, per_second=1.0, seconds=2.0, checked_ms=NOON - 8 * HOUR)
"""Its 20 offsets that are missing take 20 s."""


@pytest.fixture(autouse=True)
def _without_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fence", "wait_until_complete"):
        monkeypatch.setattr(prewarm, name, lambda *_: None)
    monkeypatch.setattr(prewarm, "hold_deletions", lambda *_: 0)
    monkeypatch.setattr(gate, "restart", lambda *_: pytest.fail("a copy is emptied that blue still writes to"))
    monkeypatch.setattr(rewarm, "now_ms", lambda: NOON)
    monkeypatch.setattr(prewarm, "now_ms", lambda: NOON)


def world_of(warmth: Warmth | None = COLD, **arguments: Any) -> GateWorld:
    return GateWorld(
        journal=Journal(plan=PLAN, warmth=warmth, was_warm=GREEN, prewarmed={"restore": 30.0}), **arguments
    )


def run(world: GateWorld, monkeypatch: pytest.MonkeyPatch, owner: str = "test") -> None:
    monkeypatch.setattr(Rescale, "open", lambda *_: world.rescale)
    connection: Any = None
    rewarm.restore_again(world.application, connection, owner=owner)


def started(world: GateWorld) -> int:
    return world.done.count(f"start_gated {GREEN}")


def switch(order: Order = Order.WINDOW, **changes: Any) -> Switch:
    return Switch(plan=PLAN.fingerprint, attempt=1, order=order, **changes)


class TestWhenItIsDue:
    def test_ten_minutes_ahead_of_a_window_and_once(self) -> None:
        tonight = NOON + 14 * HOUR
        waiting = switch(windows=NIGHTLY, since_ms=NOON, until_ms=NOON + 48 * HOUR)
        assert not is_due(COLD, waiting, tonight - AHEAD_MS - 1)
        assert is_due(COLD, waiting, tonight - AHEAD_MS)
        assert not is_due(COLD.checked(tonight - AHEAD_MS), waiting, tonight)

    def test_earlier_if_the_last_restoring_took_long(self) -> None:
        named = switch(Order.NOW, not_before_ms=NOON + 2 * HOUR)
        assert is_due(COLD.restored(10, 3600.0), named, NOON)
        assert not is_due(COLD.restored(10, 60.0), named, NOON)

    def test_at_once_if_the_approval_has_come_late(self) -> None:
        assert is_due(COLD, switch(), NOON)
        assert not is_due(COLD.checked(NOON - AHEAD_MS), switch(), NOON)

    @pytest.mark.parametrize("order", [Order.NOW, Order.HOLD, Order.CANCEL])
    def test_not_if_a_person_says_now_or_not_now(self, order: Order) -> None:
        assert not is_due(COLD, switch(order), NOON)

    def test_not_when_the_wait_is_over(self) -> None:
        held = switch(windows=NIGHTLY, since_ms=NOON - 2 * HOUR, until_ms=NOON - HOUR)
        assert not is_due(COLD, held, NOON)


def test_it_restores_what_is_missing_with_its_local_state(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of()
    run(world, monkeypatch)
    journal = world.journal
    assert started(world) == 1
    assert world.shown == [(gate_group(GREEN), {"orders": {0: 2}}, {"orders": {0: KEEP}})]
    assert journal.warmth is not None
    assert (journal.warmth.offsets, journal.warmth.checked_ms) == (30, NOON)
    assert journal.warmth.per_second == COLD.per_second, "what is restored in small is no measure"
    assert journal.prewarmed["restore"] == 30.0
    assert "Shortly before the switch, it restored for" in remark({"restore": 1.0}, journal.prewarmed)
    assert (journal.gate_ends, journal.beside_copy) == ({}, False)
    assert not world.running
    assert not world.members


@pytest.mark.parametrize("before", [0, NOON + HOUR])
def test_deletions_are_kept_for_as_long_again_from_the_last_restoring_on(
    monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """A journal of a pre-warming that holds every record has no such moment."""
    world = world_of()
    world.journal = world.journal.model_copy(update={"deletions_kept_until_ms": before})
    monkeypatch.setattr(rewarm, "kept_until", lambda: NOON + 29 * 24 * HOUR)
    run(world, monkeypatch)
    assert world.journal.deletions_kept_until_ms == (NOON + 29 * 24 * HOUR if before else 0)


def test_under_the_streams_protocol_every_instance_keeps_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(protocol="streams", patience=30)
    run(world, monkeypatch)
    assert world.shown[0][2] == {"orders": {0: f"{EVERYTHING} {KEEP}"}}
    assert world.journal.warmth is not None
    assert world.journal.warmth.offsets == 30


def test_while_it_restores_more_is_copied_and_nothing_is_undone_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on until little is missing, and three times at most."""
    world = world_of()
    start = world._start

    def more(instance: Any) -> None:
        start(instance)
        world.ends = {TOPIC: {0: world.ends[TOPIC][0] + 100, 1: 20}}
        world.told = world.ends

    monkeypatch.setattr(world, "_start", more)
    run(world, monkeypatch)
    assert started(world) == rewarm.ROUNDS
    assert world.journal.warmth is not None
    assert world.journal.warmth.offsets == 230, "the ends when it was started for the last time"


def test_too_little_is_left_to_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(COLD.restored(26, 2.0))
    run(world, monkeypatch)
    assert started(world) == 0
    assert world.journal.warmth == COLD.restored(26, 2.0).checked(NOON)


def test_without_a_pre_warming_nothing_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(None)
    run(world, monkeypatch)
    assert world.done == []


def test_a_cutover_that_has_begun_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GateWorld(journal=Journal(plan=PLAN, warmth=COLD, phase=Phase.QUIESCED))
    run(world, monkeypatch)
    assert world.done == []


def test_another_runs_expansion_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of()
    with pytest.raises(Fenced):
        run(world, monkeypatch, owner="another")
    assert world.done == []


def test_killed_at_any_call_it_is_done_by_the_next_try(monkeypatch: pytest.MonkeyPatch) -> None:
    for call, world in killed_at_each_call(world_of, lambda world: run(world, monkeypatch)):
        assert not world.running or world.journal.gate_ends, "an instance that the journal knows nothing of"
        world.dies_at = 0
        run(world, monkeypatch)
        assert (world.running, world.members, world.told) == (False, False, {})
        assert world.journal.warmth is not None
        assert world.journal.warmth.offsets == 30, call


def test_a_person_who_says_now_is_not_kept_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewarm, "ASK_SECONDS", 0.0)
    world = world_of(restores=False, patience=60)
    start = world._start

    def then_hurry(instance: Any) -> None:
        start(instance)
        world.switch = switch(Order.NOW, by="anna")

    monkeypatch.setattr(world, "_start", then_hurry)
    run(world, monkeypatch)
    assert not world.running
    assert world.journal.gate_ends == {}
    assert world.journal.warmth == COLD.checked(NOON), "nobody knows how far it has restored"


def test_what_the_gate_has_refused_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(refuses="refused: a record for topic totals")
    with pytest.raises(UnsafeState, match="a record for topic totals"):
        run(world, monkeypatch)
    assert not world.running


def test_committed_offsets_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsafeState, match="committed offsets of orders"):
        run(world_of(commits={"orders": {0: 3}}), monkeypatch)


def test_a_pre_warming_says_how_far_and_how_fast_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GateWorld(beats=["by a 1 keeps", "by a 2 keeps"], patience=30)
    monkeypatch.setattr(Rescale, "open", lambda *_: world.rescale)
    connection: Any = None
    timings = prewarm.prewarm(world.application, connection, owner="test")
    warmth = world.journal.warmth
    assert timings is not None
    assert warmth is not None
    assert (warmth.offsets, warmth.checked_ms) == (30, NOON)
    assert warmth.per_second == pytest.approx(30 / max(timings["restore"], 0.001))
    assert warmth.missing(30) == warmth.missing(7) == 0


def test_a_gate_of_an_earlier_version_is_not_asked_to_keep_local_state(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It would delete the state right before the switch, and green would restore everything within the pause."""
    world = GateWorld(beats=["by a 1", "by a 2"], patience=30)
    monkeypatch.setattr(Rescale, "open", lambda *_: world.rescale)
    connection: Any = None
    assert prewarm.prewarm(world.application, connection, owner="test")
    assert world.journal.warmth is None
    assert "have not said that they can keep their local state" in caplog.text


def test_who_starts_and_stops_by_hand_is_not_asked_at_night(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of()
    by_hand = {"type": "manual", "timeout_seconds": 60, "start_gated": "Start it behind the gate."}
    declared = application("shop", lifecycle=by_hand)
    monkeypatch.setattr(
        Rescale, "open", lambda *_: SimpleNamespace(**{**vars(world.rescale), "application": declared})
    )
    connection: Any = None
    rewarm.restore_again(declared, connection, owner="test")
    assert started(world) == 0


def test_the_end_of_a_window_ends_it_so_that_the_switch_can_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewarm, "ASK_SECONDS", 0.0)
    until = NOON + 14 * HOUR + 3 * HOUR
    waiting = switch(windows=NIGHTLY, since_ms=NOON, until_ms=NOON + 48 * HOUR)
    world = world_of(restores=False, patience=60, switch=waiting)
    clock = iter([until - 10 * 60_000] * 6)
    monkeypatch.setattr(rewarm, "now_ms", lambda: next(clock, until - MARGIN_MS + 1))
    monkeypatch.setattr(rewarm, "_switch", lambda *_: waiting)
    run(world, monkeypatch)
    assert started(world) == 1
    assert not world.running
    assert world.journal.warmth is not None
    assert world.journal.warmth.offsets == COLD.offsets


@pytest.mark.parametrize("moment", ["before its start", "while it restores"])
@pytest.mark.parametrize(
    "found",
    [{"opening": 7}, {"phase": Phase.STARTED}, {"attempt": 2, "opening": 7}],
    ids=["a later try", "promoted", "another attempt"],
)
def test_a_try_that_was_frozen_neither_starts_nor_stops_anything(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, Any], moment: str
) -> None:
    """By then green may own the inputs: if it were stopped, nobody would run."""
    world = world_of(patience=60)

    def meanwhile(*_: Any, **__: Any) -> None:
        world.journal = world.journal.model_copy(update={**found, "gate_ends": {}, "beside_copy": False})
        world.running, world.members, world.committed = True, True, {"orders": {0: 5}}
        world.done.clear()

    if moment == "before its start":
        monkeypatch.setattr(behind_gate, "_show_inputs", meanwhile)
    else:
        monkeypatch.setattr(world, "_start", meanwhile)
    with pytest.raises(Fenced):
        run(world, monkeypatch)
    assert world.running
    assert world.members
    assert world.committed == {"orders": {0: 5}}
    assert not [each for each in world.done if each.split()[0] in {"start_gated", "stop", "delete_group"}]


@pytest.mark.parametrize("phase", [Phase.ROLLING_BACK, Phase.ROLLED_BACK])
def test_what_has_started_behind_the_stop_of_a_rollback_is_stopped(
    monkeypatch: pytest.MonkeyPatch, phase: Phase
) -> None:
    """A start may take a minute. Nobody else would stop what it has started."""
    world = world_of(patience=60)
    start = world._start

    def rolled_back_meanwhile(instance: Any) -> None:
        world.journal = world.journal.model_copy(update={"phase": phase, "gate_ends": {}, "beside_copy": False})
        start(instance)
        world.done.clear()

    monkeypatch.setattr(world, "_start", rolled_back_meanwhile)
    with pytest.raises(Fenced):
        run(world, monkeypatch)
    assert not world.running
    assert world.done == [f"stop {GREEN}"]
    assert world.journal.phase is phase, "the attempt stays over"


def test_a_try_that_freezes_within_its_stop_deletes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of()

    def freezes(_: Any) -> None:
        world.journal = world.journal.model_copy(update={"phase": Phase.PROMOTED, "gate_ends": {}})
        world.running, world.committed = False, {"orders": {0: 5}}

    monkeypatch.setattr(world, "_stop", freezes)
    with pytest.raises(Fenced, match="found attempt 1, phase promoted"):
        run(world, monkeypatch)
    assert world.committed == {"orders": {0: 5}}
    assert world.journal.phase is Phase.PROMOTED


def test_an_order_between_two_rounds_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of()
    stop = world._stop

    def stopped(instance: Any) -> None:
        stop(instance)
        world.ends = {TOPIC: {0: 500, 1: 20}}
        world.switch = switch(Order.NOW, by="anna")

    monkeypatch.setattr(world, "_stop", stopped)
    run(world, monkeypatch)
    assert started(world) == 1


def test_the_next_look_comes_ten_minutes_ahead_although_the_pre_warming_took_hours() -> None:
    tonight = NOON + 14 * HOUR
    waiting = switch(windows=NIGHTLY, since_ms=NOON, until_ms=NOON + 48 * HOUR)
    long = COLD.restored(10, 3 * 3600.0)
    early = tonight - 6 * HOUR
    assert is_due(long, waiting, early)
    assert not is_due(long.checked(early), waiting, tonight - AHEAD_MS - 1)
    assert is_due(long.checked(early), waiting, tonight - AHEAD_MS)


def test_the_trigger_hands_over_to_the_task_and_the_page_says_what_it_does() -> None:
    waiting = switch(windows=NIGHTLY, since_ms=NOON, until_ms=NOON + 48 * HOUR)
    journal = Journal(plan=PLAN, warmth=COLD)
    state = ControlState(
        journal=journal, lease=Lease(owner="test", epoch=1, target=2, expires_at_ms=0), switch=waiting
    )
    near = NOON + 14 * HOUR - AHEAD_MS
    assert not is_over(state, "test", NOON)[0]
    assert is_over(state, "test", near) == (
        True,
        "the switch is near: the new generation may have to restore again",
    )
    checked = state.model_copy(update={"journal": journal.model_copy(update={"warmth": COLD.checked(near)})})
    assert not is_over(checked, "test", near)[0]

    assert "restores" not in told_switch(state, near)
    busy = journal.model_copy(update={"gate_ends": ENDS, "beside_copy": True})
    told = told_switch(state.model_copy(update={"journal": busy}), near)
    assert told.startswith("The new generation restores what was copied since it was warm")
    assert AGAIN not in journal.prewarmed
