"""A cutover in place when a job dies, a person starts the application, or the file has another mode."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.application.streams import Mode
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.progress import Extremes, PartitionProgress
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.core.formats.record_limits import RecordLimits
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.units import CopyUnit
from kafka_rescale.operations.cutover import copies, cutover, growing, in_place, jobs_beside, start_green
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.modes import in_place as in_place_mode

from tests.support.expansion.gate_world import Killed
from tests.support.expansion.growing_steps import (
    APPLICATION,
    assert_grown,
    cut_over,
    use,
    without_brokers,
)
from tests.support.expansion.growing_world import BEFORE, NAME, OUTPUT, OWNER, GrowingWorld
from tests.support.plans import in_place_plan

DAY_MS = 86_400_000
STATE = "orders-app-per-customer-changelog"


@pytest.fixture(autouse=True)
def _no_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    without_brokers(monkeypatch)


def test_nothing_is_stopped_for_local_state_that_may_lack_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is pre-warmed in place, but every cutover asks."""
    world = use(GrowingWorld(), monkeypatch)
    old = world.journal.model_copy(update={"deletions_kept_until_ms": 1})
    world.state = world.state.model_copy(update={"journal": old})
    with pytest.raises(UnsafeState, match=r"local state of .*more than 29 days ago"):
        cut_over()
    assert world.running
    assert world.journal.phase in {Phase.WARMING, Phase.ROLLING_BACK, Phase.ROLLED_BACK}
    assert world.starts == 0


class TestSomebodyStartsItMeanwhile:
    """Between the stop and the start by the cutover, nothing else may start the application."""

    @pytest.fixture
    def stopped(self, monkeypatch: pytest.MonkeyPatch) -> GrowingWorld:
        """A stopped application whose move job has died, and with it the cutover."""
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
        assert len(stopped.ends[STATE]) == BEFORE

    def test_what_it_has_processed_is_found(self, stopped: GrowingWorld) -> None:
        stopped.offsets[NAME]["orders"][2] += 1
        with pytest.raises(UnsafeState, match="offsets of orders-2 committed since it was stopped") as refused:
            cut_over()
        assert len(stopped.ends[STATE]) == BEFORE
        assert f"group {NAME} " in refused.value.remedy
        assert ": orders-2 to 12. Then clear" in refused.value.remedy
        assert "neither state nor" in refused.value.remedy
        # A person does what the error says.
        stopped.offsets[NAME]["orders"][2] = 12
        cut_over()
        assert_grown(stopped)

    def test_what_it_has_written_is_told_until_records_were_moved(self, stopped: GrowingWorld) -> None:
        stopped.offsets[NAME]["orders"][2] += 1
        stopped.ends[STATE][3] += 4
        with pytest.raises(UnsafeState, match=f"{STATE}-3 from 13 on. Where they are state, it counts"):
            cut_over()
        stopped.ends = {t: {**of, **dict.fromkeys(range(BEFORE, 8), 0)} for t, of in stopped.ends.items()}
        with pytest.raises(UnsafeState, match="can't be told any more, because records were moved"):
            cut_over()

    def test_it_is_not_taken_for_the_one_that_was_started_here(
        self, stopped: GrowingWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        grow_and_move = in_place_mode.grow_and_move

        def somebody_starts_it(*arguments: Any) -> Any:
            journal = grow_and_move(*arguments)
            stopped.running = stopped.members = True
            return journal

        monkeypatch.setattr(in_place_mode, "grow_and_move", somebody_starts_it)
        with pytest.raises(UnsafeState, match="without the offsets that it is to start from"):
            cut_over()


@pytest.mark.parametrize("phase", [Phase.PROMOTED, Phase.STARTED])
def test_a_try_that_was_frozen_keeps_the_ends_of_the_try_that_has_started_the_application(
    phase: Phase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise verify would compare records that the application has written since."""
    world, wait_until_complete = use(GrowingWorld(), monkeypatch), in_place.wait_until_complete
    frozen = [True]

    def killed(*_: Any) -> Any:
        raise Killed

    def freeze(*arguments: Any) -> Any:
        if frozen:
            frozen.pop()
            with monkeypatch.context() as other:
                if phase is Phase.PROMOTED:
                    other.setattr(start_green, "watch_first_output", killed)
                with pytest.raises(Killed) if phase is Phase.PROMOTED else nullcontext():
                    cut_over()
            assert (world.journal.phase, world.starts) == (phase, 1)
        return wait_until_complete(*arguments)

    monkeypatch.setattr(in_place, "wait_until_complete", freeze)
    cut_over()
    assert not frozen
    assert_grown(world)


def test_a_broker_that_does_not_know_of_the_growth_yet_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the journal would lack the new partitions, and ``verify`` would not compare them."""
    world, wait_until_complete = use(GrowingWorld(), monkeypatch), in_place.wait_until_complete
    asked: list[int] = []

    def as_before(*arguments: Any) -> Any:
        ends = wait_until_complete(*arguments)
        asked.append(len(asked))
        if len(asked) > 1:
            return ends
        return {topic: {p: end for p, end in of.items() if p < BEFORE} for topic, of in ends.items()}

    monkeypatch.setattr(in_place, "wait_until_complete", as_before)
    cut_over()
    assert asked == [0, 1]
    assert_grown(world)


def test_what_the_rehearsal_has_not_seen_is_looked_at_before_the_point_of_no_return(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, seen = use(GrowingWorld(), monkeypatch), {}
    changelog, carried = world.plan.stages[0].moves
    rehearsed = (PartitionProgress(topic=changelog.source, partition=2, position=9, end=9),)
    result = JobResult(job="rehearse", run=OWNER, attempt=1, state="done", partitions=rehearsed)
    world.state = world.state.model_copy(update={"results": {"rehearse": result}})

    def look(_: Any, unit: CopyUnit, start: int, end: int, *__: Any) -> None:
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


@pytest.mark.parametrize(
    ("configs", "found"),
    [
        ({"message.timestamp.before.max.ms": str(7 * DAY_MS)}, r"timestamp \d+, which brokers refuse"),
        ({"message.timestamp.after.max.ms": str(DAY_MS)}, r"timestamp \d+, which brokers refuse"),
        ({"max.message.bytes": "999"}, "a record of 1000 bytes"),
    ],
)
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_rehearsal_that_no_longer_holds_stops_nothing(
    configs: dict[str, str | None], found: str, is_gone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A week may pass before the switch: records have grown older, and a person has changed a config."""
    world = use(GrowingWorld(), monkeypatch)
    now = now_ms()
    seen = Extremes(oldest_ms=now - 8 * DAY_MS, newest_ms=now + 2 * DAY_MS, bytes=1_000)
    rehearsed = (PartitionProgress(topic=STATE, partition=2, position=12, end=12, extremes=seen),)
    result = JobResult(job="rehearse", run=OWNER, attempt=1, state="done", partitions=rehearsed)
    world.state = world.state.model_copy(update={"results": {"rehearse": result}})
    world.configs[STATE] = configs
    if is_gone:
        # Retention or compaction has removed the records that had these extremes.
        cut_over()
        assert_grown(world)
        return

    def rehearse(connection: Any, unit: CopyUnit, start: int, end: int, limits: RecordLimits, *_: Any) -> None:
        if unit.source == (STATE, 2):
            assert (start, end) == (0, 12)
            for timestamp_ms in (seen.oldest_ms, seen.newest_ms):
                limits.check(f"topic {STATE} partition 2", timestamp_ms, seen.bytes)

    monkeypatch.setattr(growing, "rehearse_unit", rehearse)
    with pytest.raises(UnsafeState, match=f"topic {STATE} partition 2.*: found {found}"):
        cut_over()
    assert world.running
    assert (world.journal.phase, world.journal.stop_asked) == (Phase.ROLLED_BACK, False)
    # A person does what the error says.
    world.configs[STATE] = {}
    world.begin_again()
    cut_over()
    assert_grown(world)


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


def test_it_is_not_stopped_while_an_earlier_bridge_has_late_records(monkeypatch: pytest.MonkeyPatch) -> None:
    world = use(GrowingWorld(), monkeypatch)
    monkeypatch.setattr(cutover, "assert_none_late", _refuse)
    with pytest.raises(UnsafeState, match="a test"):
        cut_over()
    assert world.running
    assert (world.journal.phase, world.journal.stop_asked) == (Phase.ROLLED_BACK, False)


def test_it_is_not_stopped_before_the_job_that_moves_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead job leaves its last result, which says that it was ready."""
    monkeypatch.setattr(copies, "READY_SECONDS", 0.1)
    world = use(GrowingWorld(), monkeypatch)
    world.put("ready")
    world.has_job = False
    with pytest.raises(Outage, match="the move job to be up"):
        cut_over()
    assert world.running
    assert (world.journal.phase, world.journal.stop_asked) == (Phase.ROLLED_BACK, False)


def test_what_the_brokers_would_not_grow_is_found_before_anything_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = use(GrowingWorld(refuses="topic 'orders'"), monkeypatch)
    with pytest.raises(UnsafeState, match="topic 'orders': found POLICY_VIOLATION"):
        cut_over()
    assert world.running
    assert (world.journal.phase, world.journal.stop_asked) == (Phase.ROLLED_BACK, False)


def test_a_job_that_has_died_since_the_stop_is_found_while_there_is_a_way_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After the promotion, the application would be down until Spark is back."""
    monkeypatch.setattr(jobs_beside, "SILENT_SECONDS", 0.1)
    monkeypatch.setattr(jobs_beside, "DOUBT_SECONDS", 0.1)
    monkeypatch.setattr(jobs_beside, "CONTROL_TOPIC", OUTPUT)
    world = use(GrowingWorld(), monkeypatch)

    def stops(_: Any) -> None:
        world.running = world.has_job = False

    monkeypatch.setattr(world, "_stop", stops)
    with pytest.raises(
        Outage, match=r"move job of orders-app: found no sign of life for 0 s \(its last was 'ready'\)"
    ):
        cut_over()
    assert world.running
    assert world.journal.phase is Phase.ROLLED_BACK


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


def test_a_plan_of_the_other_mode_is_not_cut_over(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = in_place_plan().model_copy(update={"green": f"{NAME}-g2"})
    world = use(GrowingWorld(plan=beside), monkeypatch)
    with pytest.raises(UnsafeState, match="begun with mode blue_green"):
        cut_over()
    assert world.running
    other = use(GrowingWorld(), monkeypatch)
    declared = replace(other.rescale, application=APPLICATION.model_copy(update={"mode": Mode.BLUE_GREEN}))
    monkeypatch.setattr(Rescale, "open", lambda *_: declared)
    with pytest.raises(UnsafeState, match=r"begun with mode in_place.*or roll it back; then ask again"):
        cut_over()
    assert other.running
    promoted = other.journal.model_copy(update={"phase": Phase.PROMOTED})
    other.state = other.state.model_copy(update={"journal": promoted})
    with pytest.raises(UnsafeState, match="after its promotion it can't be rolled back"):
        cut_over()


def _refuse(*_: Any) -> None:
    raise UnsafeState("a test", found="this", expected="that", remedy="None.")
