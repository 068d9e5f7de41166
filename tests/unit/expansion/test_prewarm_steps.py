"""Pre-warming can be killed at every single call, and called again. It never leaves green behind the gate."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.core.application.streams import Mode
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import Outage, Refused, UnsafeState
from kafka_rescale.core.expansion.prewarming import EVERYTHING, gate_group
from kafka_rescale.operations.expansion import compaction, prewarm, restoring, restoring_everything
from kafka_rescale.operations.expansion import warm_up_gate as gate
from kafka_rescale.operations.expansion.rescale import Rescale

from tests.support.expansion.gate_world import PLAN, GateWorld, killed_at_each_call
from tests.support.plans import stateless_plan
from tests.support.small_application import application

A, B, C = "a", "b", "c"
FIRST = {A: frozenset({("orders", 0)}), B: frozenset({("orders", 1)})}
DIED = {A: frozenset({("orders", 0), ("orders", 1)})}
LATE = {**FIRST, C: frozenset[tuple[str, int]]()}
MOVED = {A: FIRST[B], B: FIRST[A]}
KEPT_UNTIL_MS = 1_800_000_000_000
WAS_WARM = Journal(plan=PLAN, was_warm=PLAN.green)


@pytest.fixture(autouse=True)
def _without_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fence", "wait_until_complete"):
        monkeypatch.setattr(prewarm, name, lambda *_: None)
    monkeypatch.setattr(prewarm, "hold_deletions", lambda *_: KEPT_UNTIL_MS)
    monkeypatch.setattr(gate, "restart", lambda *_: None)


def run(
    world: GateWorld, monkeypatch: pytest.MonkeyPatch, declared: Any = None, **arguments: bool
) -> dict[str, float] | None:
    monkeypatch.setattr(Rescale, "open", lambda *_: world.rescale)
    connection: Any = None
    return prewarm.prewarm(declared or world.application, connection, owner="test", **arguments)


def assert_cold(world: GateWorld) -> None:
    assert not world.running
    assert not world.members
    assert world.journal.gate_ends == {}
    assert world.told == {}


def test_green_is_started_behind_the_gate_and_stopped_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GateWorld()
    timings = run(world, monkeypatch)
    assert timings is not None
    assert timings.keys() == {"start", "restore", "stop"}
    assert world.journal.prewarmed == timings
    assert world.journal.was_warm == "shop-g2"
    assert world.journal.deletions_kept_until_ms == KEPT_UNTIL_MS
    assert_cold(world)


def test_a_cutover_does_not_rely_on_deletions_that_may_be_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of deletions that are gone, the entries would live on in green's stores, and verify would not notice."""
    journal = Journal(plan=PLAN, deletions_kept_until_ms=KEPT_UNTIL_MS)
    monkeypatch.setattr(compaction, "now_ms", lambda: KEPT_UNTIL_MS)
    compaction.assert_deletions_kept(journal)
    monkeypatch.setattr(compaction, "now_ms", lambda: KEPT_UNTIL_MS + 1)
    with pytest.raises(UnsafeState, match="restored more than 29 days ago; expected a switch before 2027-01-15"):
        compaction.assert_deletions_kept(journal)
    # Not pre-warmed, or compaction removes nothing at all, as an earlier version held it.
    compaction.assert_deletions_kept(Journal(plan=PLAN))


def test_killed_at_any_call_it_is_done_by_the_next_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    for call, world in killed_at_each_call(GateWorld, lambda world: run(world, monkeypatch)):
        assert not world.running or world.journal.gate_ends, "an instance that the journal knows nothing of"
        assert bool(world.journal.gate_copied) is bool(world.journal.gate_ends)
        assert not world.members or world.journal.was_warm, "local state that the journal knows nothing of"
        world.dies_at = 0
        assert run(world, monkeypatch), call
        assert_cold(world)


def test_without_a_way_to_start_behind_the_gate_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = GateWorld()
    assert run(world, monkeypatch, declared=application("shop")) is None
    assert world.done == []
    assert "declares no `start_gated`" in caplog.text


def test_under_the_streams_protocol_each_instance_restores_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GateWorld(protocol="streams", patience=30)
    timings = run(world, monkeypatch)
    assert timings is not None
    assert timings.keys() == {"start", "restore", "stop"}
    assert world.shown == [(gate_group("shop-g2"), {"orders": {0: 2}}, {"orders": {0: EVERYTHING}})]
    # Nothing is left of the groups in which each instance was alone.
    assert world.alone == []
    assert_cold(world)


def test_an_instance_that_has_not_come_restores_within_the_pause_and_that_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(restoring_everything, "SETTLED_SECONDS", 0.0)
    world = GateWorld(protocol="streams", patience=30, instances=1)
    assert run(world, monkeypatch)
    assert "1 instances have restored, but the running generation has 2" in caplog.text


def test_fewer_instances_than_before_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GateWorld(protocol="streams", patience=2, instances=1)
    with pytest.raises(Outage, match="to restore its stores"):
        run(world, monkeypatch)
    assert_cold(world)


def test_killed_at_any_call_no_group_of_a_single_instance_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def streams(**arguments: int) -> GateWorld:
        return GateWorld(protocol="streams", patience=30, **arguments)

    for call, world in killed_at_each_call(streams, lambda world: run(world, monkeypatch)):
        world.dies_at = 0
        assert run(world, monkeypatch), call
        assert world.alone == []
        assert_cold(world)


def test_local_state_of_an_earlier_pre_warming_is_not_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Green would restore on top of it, and keep entries that were deleted while its copies were made anew."""
    world, declared = GateWorld(journal=WAS_WARM), application("shop")
    with pytest.raises(Refused, match=r"Delete the directory `shop-g2` below `state.dir` of every instance"):
        run(world, monkeypatch, declared)
    assert world.journal.was_warm
    # A person says that the state is deleted, and is not asked again.
    assert run(world, monkeypatch, declared, local_state_deleted=True) is None
    assert not world.journal.was_warm
    assert run(world, monkeypatch, declared) is None


def test_behind_the_gate_earlier_local_state_is_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate deletes it."""
    assert run(GateWorld(journal=WAS_WARM), monkeypatch)


def test_local_state_is_not_asked_for_once_the_cutover_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GateWorld(journal=WAS_WARM.model_copy(update={"phase": Phase.STARTED}))
    assert run(world, monkeypatch, application("shop")) is None
    assert world.journal.was_warm


def test_without_a_store_there_is_nothing_to_restore(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a changelog of green, the journal could not record either that green is behind the gate."""
    caplog.set_level("INFO")
    world = GateWorld(journal=Journal(plan=stateless_plan(Mode.BLUE_GREEN)))
    assert run(world, monkeypatch) is None
    assert world.done == []
    assert "no store of its own" in caplog.text


@pytest.mark.parametrize("phase", [Phase.ROLLING_BACK, Phase.ROLLED_BACK])
@pytest.mark.parametrize("declared", [None, application("shop")], ids=["pre-warmed", "never pre-warmed"])
def test_cleared_after_a_rollback_it_does_not_seem_to_be_done(
    monkeypatch: pytest.MonkeyPatch, phase: Phase, declared: Any
) -> None:
    world = GateWorld(journal=Journal(plan=PLAN, phase=phase, rollback_reason="the disks are full"))
    with pytest.raises(UnsafeState, match=f"{phase}, because: the disks are full.*Trigger the expansion again"):
        run(world, monkeypatch, declared)
    assert world.done == []


def test_once_the_cutover_has_begun_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GateWorld(journal=Journal(plan=PLAN, phase=Phase.QUIESCING, prewarmed={"restore": 5.0}))
    assert run(world, monkeypatch) == {"restore": 5.0}
    assert world.done == []


def test_stores_that_are_not_restored_in_time_are_an_outage_and_green_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = GateWorld(restores=False)
    with pytest.raises(Outage, match=r"Timed out after 0 s waiting for .* to restore its stores"):
        run(world, monkeypatch)
    assert_cold(world)
    assert world.journal.prewarmed == {}


def test_a_gate_that_lets_green_commit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GateWorld(commits={"orders": {0: 7}})
    with pytest.raises(UnsafeState, match="committed offsets of orders"):
        run(world, monkeypatch)
    assert_cold(world)
    assert world.committed == {}
    assert world.journal.prewarmed == {}


def test_green_that_has_ended_is_not_taken_for_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A classic member doesn't leave its group on close. The group stays stable until the session times out."""
    world = GateWorld(ends_itself=True)
    with pytest.raises(Outage, match="an application that has ended by itself"):
        run(world, monkeypatch)
    assert_cold(world)
    assert world.journal.prewarmed == {}


@pytest.mark.parametrize(
    ("later", "told"),
    [
        (DIED, "1 of 2 members have gone while they restored"),
        (LATE, "1 members have come after the 2 of the first assignment"),
        (MOVED, "tasks have moved between its 2 members"),
    ],
)
def test_members_that_are_not_those_of_the_first_assignment_restore_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, later: Any, told: str
) -> None:
    """All changelogs are reported to be at their ends, and the group is stable with the remaining members."""
    world = GateWorld(patience=30, pictures=[FIRST, later, FIRST], beats=["by a 1", "by a 2", "by a 2", "by a 3"])
    timings = run(world, monkeypatch)
    assert told in caplog.text
    assert timings is not None
    assert timings.keys() == {"start", "restore", "stop", "given up"}
    assert world.journal.prewarmed == timings
    assert [line for line in world.done if line.startswith("start_gated")] == ["start_gated shop-g2"] * 2
    assert_cold(world)


def test_members_that_change_in_every_try_are_a_failure_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GateWorld(patience=30, pictures=[FIRST, DIED, FIRST, DIED], beats=["by a 1"])
    with pytest.raises(Outage, match="found 1 of 2 members have gone while they restored, 2 times"):
        run(world, monkeypatch)
    assert_cold(world)
    assert world.journal.prewarmed == {}


def test_an_instance_that_has_restored_and_tells_no_longer_that_it_lives_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The group counts the instance among its members until its session times out."""
    monkeypatch.setattr(restoring, "SILENT_SECONDS", 0.0)
    world = GateWorld(patience=30, pictures=[FIRST], beats=["by a 1"])
    with pytest.raises(Outage, match="1 of 1 instances have ended after they had restored"):
        run(world, monkeypatch)
    assert_cold(world)


@pytest.mark.parametrize("ends_itself", [False, True], ids=["it lives on", "it ends"])
def test_a_write_that_the_gate_has_refused_is_in_a_local_store(
    monkeypatch: pytest.MonkeyPatch, *, ends_itself: bool
) -> None:
    world = GateWorld(refuses="refused: a record for topic totals", ends_itself=ends_itself)
    with pytest.raises(UnsafeState, match="found refused: a record for topic totals;") as error:
        run(world, monkeypatch)
    assert "delete its local state" in str(error.value)
    assert_cold(world)
    assert world.journal.prewarmed == {}


def test_offsets_from_elsewhere_are_refused_before_green_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GateWorld(committed={"orders": {0: 7}})
    with pytest.raises(UnsafeState, match="No step of this expansion"):
        run(world, monkeypatch)
    assert not [line for line in world.done if line.startswith("start_gated")]
