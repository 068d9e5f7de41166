"""The steps of a growth in place may be killed at every single call, and be called again."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.application import Mode
from kafka_rescale.core.control_records import JobResult, PartitionProgress
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.core.journal import Phase
from kafka_rescale.kafka.copy_units import CopyUnit
from kafka_rescale.operations import copies, cutover, growing, in_place, quiesce, start_green
from kafka_rescale.operations.compaction import KEEP_ALL
from kafka_rescale.operations.cutover import run_cutover
from kafka_rescale.operations.rescale import Rescale
from kafka_rescale.operations.rollback import roll_back
from kafka_rescale.operations.stages import expand_stage

from tests.support.gate_world import Killed
from tests.support.growing_world import AFTER, BEFORE, NAME, OUTPUT, OWNER, GrowingWorld
from tests.support.plans import in_place_application, in_place_plan

APPLICATION, NOBODY = in_place_application(), None
CONNECTION: Any = NOBODY


@pytest.fixture(autouse=True)
def _without_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_place, "fence", lambda *_: None)
    monkeypatch.setattr(start_green, "watch_first_output", lambda *_: {"restore": 0.0})
    monkeypatch.setattr(growing, "rehearse_unit", lambda *_: None)
    for module in (in_place, quiesce):
        monkeypatch.setattr(module, "wait_until_complete", lambda *_, **__: None)


def use(world: GrowingWorld, monkeypatch: pytest.MonkeyPatch) -> GrowingWorld:
    monkeypatch.setattr(Rescale, "open", lambda *_: world.rescale)
    return world


def cut_over() -> None:
    run_cutover(APPLICATION, CONNECTION, owner=OWNER)


def steps(world: GrowingWorld) -> None:
    """What the tasks do, in their order; those that are done are done again."""
    for stage in world.plan.stages:
        expand_stage(APPLICATION, CONNECTION, owner=OWNER, stage=stage.index)
    cut_over()


def assert_grown(world: GrowingWorld) -> None:
    assert world.journal.phase is Phase.STARTED
    assert world.running
    assert world.starts == 1
    plan, journal = world.plan, world.journal
    assert journal.green_ends == {m.target: world.ends_at_start[m.target] for m in plan.moves}
    assert {t: len(of) for t, of in world.ends.items() if t != OUTPUT} == dict.fromkeys(
        ["orders", *(m.source for m in plan.moves)], AFTER
    )
    captured = {p: 10 + p if p < BEFORE else 0 for p in range(AFTER)}
    topics = ["orders", *(m.target for m in plan.repartitions)]
    assert journal.green_start == dict.fromkeys(topics, captured)
    # One more than its start: it was at work.
    assert world.offsets[NAME] == {t: {p: o + 1 for p, o in captured.items()} for t in topics}
    assert world.state.generations is not None
    assert (world.state.generations.running, world.state.generations.generation) == (NAME, 2)


def test_it_is_stopped_grown_moved_and_started(monkeypatch: pytest.MonkeyPatch) -> None:
    world = use(GrowingWorld(), monkeypatch)
    steps(world)
    assert_grown(world)
    kept = {topic: configs["min.compaction.lag.ms"] for topic, configs in world.configs.items()}
    assert kept == {m.target: KEEP_ALL for m in world.plan.changelogs}


def test_killed_at_any_call_the_next_attempt_ends_in_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = use(GrowingWorld(), monkeypatch)
    steps(whole)
    assert whole.calls > 50
    for call in range(1, whole.calls + 1):
        world = use(GrowingWorld(dies_at=call), monkeypatch)
        with pytest.raises(Killed):
            steps(world)
        world.dies_at = 0
        steps(world)
        assert_grown(world)


def test_killed_before_the_promotion_it_can_be_rolled_back_after_it_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = use(GrowingWorld(), monkeypatch)
    steps(whole)
    ends = GrowingWorld().ends
    for call in range(1, whole.calls + 1):
        world = use(GrowingWorld(dies_at=call), monkeypatch)
        with pytest.raises(Killed):
            steps(world)
        world.dies_at = 0
        was_promoted = world.journal.is_promoted
        said = roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a test")
        assert ("only forward" in said.told) == was_promoted
        if not was_promoted:
            assert world.running
            own = {t: of for t, of in world.ends.items() if t != OUTPUT}
            assert own == {t: of for t, of in ends.items() if t != OUTPUT}
            assert not any(of.get("min.compaction.lag.ms") for of in world.configs.values())


def test_what_its_user_has_stopped_stays_so_after_a_rollback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = use(GrowingWorld(running=False, members=True), monkeypatch)
    with monkeypatch.context() as failing:
        failing.setattr(cutover, "assert_promotable", _refuse)
        with pytest.raises(UnsafeState):
            cut_over()
    assert world.journal.phase is Phase.ROLLED_BACK
    assert not world.running
    assert not world.journal.stop_asked
    said = roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="the run's own task, behind it")
    assert said.told.startswith(
        f"rolled back before, by the task that failed; {NAME} was never touched; rolled_back"
    )
    another = roll_back(APPLICATION, CONNECTION, owner="rollback_x/another", reason="a test")
    assert another.told.startswith("nothing to roll back: it was done before; rolled_back")

    again = use(GrowingWorld(running=False, members=True), monkeypatch)
    steps(again)
    assert_grown(again)


def _refuse(*_: Any) -> None:
    raise UnsafeState("a test", found="this", expected="that", remedy="None.")


class TestSomebodyStartsItMeanwhile:
    """Between its stop and its start nobody else may."""

    @pytest.fixture
    def stopped(self, monkeypatch: pytest.MonkeyPatch) -> GrowingWorld:
        """One whose job to move what moves has died, and with it the cutover."""
        world = use(GrowingWorld(), monkeypatch)
        with monkeypatch.context() as dying:
            dying.setattr(in_place, "SILENT_SECONDS", 0.0)
            dying.setattr(world, "_grow", lambda _: setattr(world, "has_job", False))
            with pytest.raises(Outage, match="CLEAR THE MOVE TASK NOW"):
                cut_over()
        assert world.journal.phase is Phase.PROMOTED
        world.has_job = True
        return world

    def test_nothing_grows_under_it(self, stopped: GrowingWorld) -> None:
        stopped.running = stopped.members = True
        with pytest.raises(UnsafeState, match="while its topics are being re-partitioned"):
            cut_over()
        assert len(stopped.ends["orders-app-per-customer-changelog"]) == BEFORE

    def test_what_it_has_processed_is_found(self, stopped: GrowingWorld) -> None:
        stopped.offsets[NAME]["orders"][2] += 1
        with pytest.raises(UnsafeState, match="offsets of orders-2 committed since it was stopped"):
            cut_over()

    def test_it_is_not_taken_for_the_one_that_was_started_here(
        self, stopped: GrowingWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        grow_and_move = cutover.grown

        def somebody_starts_it(*arguments: Any) -> Any:
            journal = grow_and_move(*arguments)
            stopped.running = stopped.members = True
            return journal

        monkeypatch.setattr(cutover, "grown", somebody_starts_it)
        with pytest.raises(UnsafeState, match="without the offsets that it is to start from"):
            cut_over()


def test_what_the_rehearsal_has_not_seen_is_looked_at_before_the_point_of_no_return(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, seen = use(GrowingWorld(), monkeypatch), {}
    changelog, carried = world.plan.stages[0].moves
    rehearsed = (PartitionProgress(topic=changelog.source, partition=2, position=9, end=9),)
    result = JobResult(job="rehearse", run=OWNER, attempt=1, state="done", partitions=rehearsed)
    world.state = world.state.model_copy(update={"results": {"rehearse": result}})

    def look(_: Any, unit: CopyUnit, start: int, end: int) -> None:
        assert not world.journal.is_promoted
        seen[unit.source] = (start, end)

    monkeypatch.setattr(growing, "rehearse_unit", look)
    cut_over()
    assert {p: seen[changelog.source, p] for p in range(BEFORE)} == {
        0: (0, 10),
        1: (0, 11),
        2: (9, 12),
        3: (0, 13),
    }
    assert [seen[carried.source, p] for p in range(BEFORE)] == [(7, 10 + p) for p in range(BEFORE)]

    refused = use(GrowingWorld(), monkeypatch)
    monkeypatch.setattr(growing, "rehearse_unit", _refuse)
    with pytest.raises(UnsafeState):
        cut_over()
    assert refused.running
    assert refused.journal.phase is Phase.ROLLED_BACK


def test_within_the_pause_partitions_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    use(GrowingWorld(), monkeypatch)
    together = threading.Barrier(BEFORE)
    monkeypatch.setattr(growing, "rehearse_unit", lambda *_: together.wait(timeout=30))
    cut_over()


def test_nothing_is_started_that_has_not_been_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    world = use(GrowingWorld(), monkeypatch)
    move = world.move
    monkeypatch.setattr(world, "move", lambda stage: move(stage) if stage == 1 else None)
    with pytest.raises(UnsafeState, match="have not been moved, in orders-app-per-customer-changelog-0"):
        cut_over()
    assert not world.running


def test_it_is_not_stopped_before_the_job_that_moves_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a job that has died the last result is left, and says that it was ready."""
    monkeypatch.setattr(copies, "READY_SECONDS", 0.1)
    world = use(GrowingWorld(), monkeypatch)
    world.put("ready")
    world.has_job = False
    with pytest.raises(Outage, match="the move job to be up"):
        cut_over()
    assert world.running
    assert (world.journal.phase, world.journal.stop_asked) == (Phase.ROLLED_BACK, False)


def test_a_job_that_dies_is_waited_for_while_another_attempt_is_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_place, "SILENT_SECONDS", 0.2)
    monkeypatch.setattr(in_place, "POLL_SECONDS", 0.05)
    world, read = use(GrowingWorld(), monkeypatch), GrowingWorld._read
    beats = iter(range(20))

    def late(self: GrowingWorld) -> Any:
        if self.journal.phase is Phase.PROMOTED and (beat := next(beats, None)) is not None:
            self.beats = beat
            self.put("running")
            return self.state
        return read(self)

    monkeypatch.setattr(GrowingWorld, "_read", late)
    cut_over()
    assert_grown(world)


def test_its_own_topics_grow_only_after_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    world = use(GrowingWorld(), monkeypatch)
    before = {t: dict(of) for t, of in world.ends.items()}
    for stage in world.plan.stages:
        expand_stage(APPLICATION, CONNECTION, owner=OWNER, stage=stage.index)
    assert {t for t, of in world.ends.items() if of != before[t]} <= {OUTPUT}


def test_a_plan_of_the_other_mode_is_not_cut_over(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = in_place_plan().model_copy(update={"green": f"{NAME}-g2"})
    world = use(GrowingWorld(plan=beside), monkeypatch)
    with pytest.raises(UnsafeState, match="begun with mode blue_green"):
        cut_over()
    assert world.running
    other = use(GrowingWorld(), monkeypatch)
    declared = replace(other.rescale, application=APPLICATION.model_copy(update={"mode": Mode.BLUE_GREEN}))
    monkeypatch.setattr(Rescale, "open", lambda *_: declared)
    with pytest.raises(UnsafeState, match="begun with mode in_place"):
        cut_over()
    assert other.running
