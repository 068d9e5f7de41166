"""When a bridge has to run, and when the old topic counts as silent."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from kafka_rescale.cli.views import status_view
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.added_partitions import Added, layouts, steps
from kafka_rescale.core.control.bridge import Bridge, Reading, Verdict, verdict, when_restored
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.bridge_progress import Left, with_progress
from kafka_rescale.core.page.copy_estimate import job_progress
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.copy.units import divided, units_of
from kafka_rescale.spark.copy.bridge_tasks import CARRY, WAIT, CarryOn
from kafka_rescale.spark.copy.tasks import STOPPED

from tests.support.plans import plan_for
from tests.unit.plan.test_repartitioned import ORDERED, plan

SILENT_MS = 1_000
PLAN = plan(2, 4)
ENDS = {"orders": {0: 10, 1: 20}}
ALL = {("orders", 0): 10, ("orders", 1): 20}
DUE = Verdict(True, "orders -> orders-p4: waits for the promotion")


def reading(at_ms: int, **changes: object) -> Reading:
    fields = {"ends": ENDS, "last": ENDS, "positions": ALL, **changes}
    return Reading(at_ms=at_ms, **fields)  # type: ignore[arg-type]


def after(*readings: Reading) -> Bridge:
    bridge = Bridge(plan="p", begun=True)
    for each in readings:
        bridge = bridge.looked(each, SILENT_MS)
    return bridge


class TestSilence:
    def test_nothing_for_long_enough_is_silence(self) -> None:
        assert after(reading(0), reading(SILENT_MS)).ended_at_ms == SILENT_MS

    def test_the_first_look_proves_nothing(self) -> None:
        assert not after(reading(10**6)).ended_at_ms

    def test_one_record_starts_the_time_anew(self) -> None:
        moved = {"orders": {0: 10, 1: 21}}
        more = {**ALL, ("orders", 1): 21}
        seen = after(reading(0), reading(900, ends=moved, last=moved, positions=more))
        assert (seen.quiet_since_ms, seen.ended_at_ms) == (900, 0)
        assert not seen.looked(reading(1_800, ends=moved, last=moved, positions=more), SILENT_MS).ended_at_ms

    @pytest.mark.parametrize("positions", [{**ALL, ("orders", 1): 19}, {("orders", 0): 10}, {}])
    def test_a_record_that_is_not_carried_on_yet_keeps_the_bridge(
        self, positions: dict[tuple[str, int], int]
    ) -> None:
        assert not after(reading(0), reading(9_999, positions=positions)).ended_at_ms

    def test_an_open_transaction_keeps_the_bridge(self) -> None:
        before_it = {"orders": {0: 10, 1: 15}}
        assert not after(reading(0), reading(9_999, ends=before_it)).ended_at_ms


class TestGrowth:
    """The old topic grows from 2 partitions while its bridge is at work."""

    GROWN: ClassVar = {"orders": {0: 10, 1: 20, 2: 0, 3: 5}}

    def begun(self) -> Bridge:
        return Bridge(plan=PLAN.fingerprint, begun=True, ended_at_ms=1)

    def test_nothing_has_grown(self) -> None:
        assert self.begun().noticed(PLAN.bridges, ENDS) == self.begun()
        assert self.begun().noticed(PLAN.bridges, {}) == self.begun(), "an old topic that was deleted"

    def test_it_is_noticed_once_with_the_ends_of_the_partitions_before(self) -> None:
        seen = self.begun().noticed(PLAN.bridges, self.GROWN)
        assert seen.added == (Added(topic="orders", count=4, ends={0: 10, 1: 20}),)
        assert not seen.ended_at_ms
        later = {"orders": {p: end + 7 for p, end in self.GROWN["orders"].items()}}
        assert seen.noticed(PLAN.bridges, later) == seen
        assert [m.source_partitions for m in seen.widened(PLAN.bridges)] == [4]

    def test_only_positions_that_were_there_can_be_lost(self) -> None:
        seen = self.begun().noticed(PLAN.bridges, self.GROWN)
        assert seen.lost(PLAN.bridges, ALL) == []
        assert seen.with_positions({}).lost(PLAN.bridges, ALL) == [("orders", 2), ("orders", 3)]
        assert Bridge(plan="p").lost(PLAN.bridges, ()) == []

    def test_every_growth_has_what_lay_before_it_carried_on_first_by_the_counts_known_then(self) -> None:
        eight = {"orders": dict.fromkeys(range(8), 30)}
        added = self.begun().noticed(PLAN.bridges, self.GROWN).noticed(PLAN.bridges, eight).added
        first, second = steps(Journal(plan=PLAN, phase=Phase.PROMOTED), added)
        assert first.ends == ALL
        assert second.ends == {("orders", p): 30 for p in range(4)}
        found = [
            (s.layouts["orders"].move.source_partitions, s.layouts["orders"].earlier) for s in (first, second)
        ]
        assert found == [(2, ()), (4, (2,))]
        last = layouts(PLAN.bridges, added)["orders"]
        assert (last.move.source_partitions, last.earlier) == (8, (2, 4))

    def test_a_topic_that_grew_before_the_expansion_has_that_carried_on_before_all_else(self) -> None:
        (move,) = PLAN.bridges
        rescued = PLAN.stages[0].model_copy(
            update={"bridges": (move.model_copy(update={"earlier_partitions": 1}),)}
        )
        plan = PLAN.model_copy(update={"stages": (rescued,)})
        journal = Journal(plan=plan, phase=Phase.PROMOTED, input_ends={"orders": {0: 3, 1: 4}})
        (first,) = steps(journal, ())
        assert first.ends == {("orders", 0): 3}
        assert first.layouts["orders"].move.earlier_partitions == 1
        assert layouts(plan.bridges, ())["orders"].move.earlier_partitions == 0


class TestVerdict:
    def due(self, phase: Phase, bridge: Bridge | None = None, **changes: object) -> bool:
        arguments = {"last": ENDS, "topics": {"orders", *(m.target for m in PLAN.bridges)}, **changes}
        return verdict(Journal(plan=PLAN, phase=phase), bridge, **arguments).due  # type: ignore[arg-type]

    def ended(self, plan: str = PLAN.fingerprint) -> Bridge:
        return Bridge(plan=plan, begun=True, ends=ENDS, ended_at_ms=5)

    def test_there_is_none_without_a_repartitioned_input(self) -> None:
        assert not verdict(None, None, last={}, topics=()).due
        other = Journal(plan=plan_for("other"), phase=Phase.COMPLETE)
        assert not verdict(other, None, last={}, topics=()).due

    def test_it_does_not_begin_before_the_expansion_has_made_the_new_topics(self) -> None:
        assert not self.due(Phase.WARMING, topics={"orders"})
        assert self.due(Phase.CAUGHT_UP, topics={"orders"}), "they were there, and the job says that they are gone"

    def test_no_driver_is_started_before_its_run_has_restored_every_stage(self) -> None:
        def started(phase: Phase = Phase.WARMING, **changes: object) -> bool:
            result = JobResult(job="restore/1", run="run-2", attempt=1, state="done").model_copy(update=changes)
            journal = Journal(plan=PLAN, phase=phase, owner="run-2")
            return when_restored(DUE, journal, {result.job: result}).due

        (stage,) = PLAN.stages
        stateless = PLAN.model_copy(update={"stages": (stage.model_copy(update={"moves": ()}),)})
        assert started()
        assert not started(state="running")
        assert not started(run="run-1"), "an earlier run's"
        assert not started(job="restore/2")
        assert started(Phase.CAUGHT_UP, state="running"), "the application is stopped"
        assert when_restored(DUE, Journal(plan=stateless), {}).due, "there is nothing to restore"
        assert not when_restored(Verdict(False, "why"), Journal(plan=PLAN), {}).due

    def test_it_waits_for_the_promotion_of_an_expansion_that_has_begun(self) -> None:
        assert self.due(Phase.WARMING)
        assert self.due(Phase.CAUGHT_UP)
        assert not self.due(Phase.ROLLING_BACK)
        assert not self.due(Phase.ROLLED_BACK)

    @pytest.mark.parametrize("phase", [Phase.PROMOTED, Phase.STARTED, Phase.COMPLETE])
    def test_it_carries_on_from_the_promotion_until_silence_is_proven(self, phase: Phase) -> None:
        assert self.due(phase)
        assert self.due(phase, Bridge(plan=PLAN.fingerprint, begun=True))
        assert not self.due(phase, self.ended())

    def test_a_late_record_wakes_it_up_again(self) -> None:
        assert self.due(Phase.COMPLETE, self.ended(), last={"orders": {0: 10, 1: 21}})

    def test_an_old_topic_that_was_deleted_has_no_late_records(self) -> None:
        assert not self.due(Phase.COMPLETE, self.ended(), last={})
        assert not self.due(Phase.COMPLETE, self.ended(), last={"orders": {0: 0, 1: 0}})

    def test_the_end_of_an_earlier_bridge_says_nothing_about_this_one(self) -> None:
        assert self.due(Phase.COMPLETE, self.ended(plan="another"))


def test_the_partitions_of_an_input_are_divided_over_all_workers() -> None:
    lists = divided(units_of(PLAN.bridges), 2)
    assert [[unit.partition for unit in units] for units in lists] == [[0], [1]]


class TestCarryOn:
    @pytest.mark.parametrize(
        ("phase", "attempt", "expected"),
        [
            (Phase.WARMING, 1, WAIT),
            (Phase.CAUGHT_UP, 1, WAIT),
            (Phase.PROMOTED, 1, CARRY),
            (Phase.COMPLETE, 1, CARRY),
            (Phase.ROLLING_BACK, 1, STOPPED),
            (Phase.WARMING, 2, STOPPED),
        ],
    )
    def test_nothing_is_carried_before_the_promotion(self, phase: Phase, attempt: int, expected: str) -> None:
        carry = CarryOn(KafkaConnection({"bootstrap.servers": "x:1"}), PLAN, attempt=1, session="s")
        assert carry.verdict(Journal(plan=PLAN, phase=phase, attempt=attempt)) == expected

    def test_another_expansion_ends_it(self) -> None:
        carry = CarryOn(KafkaConnection({"bootstrap.servers": "x:1"}), PLAN, attempt=1, session="s")
        assert carry.verdict(Journal(plan=plan(4, 8), phase=Phase.PROMOTED)) == STOPPED
        assert carry.verdict(None) == STOPPED


class TestLeft:
    """The bridge has to pass the records that were there when the wait began."""

    def at(self, *positions: int) -> list[PartitionProgress]:
        return [
            PartitionProgress(topic="orders", partition=p, position=at, end=99) for p, at in enumerate(positions)
        ]

    def test_what_comes_later_is_not_waited_for(self) -> None:
        assert Left.of(ENDS, self.at(10, 20)).is_passed
        assert Left.of(ENDS, self.at(10, 20, -1)).is_passed, "a partition that the topic has got since"

    def test_every_partition_has_to_pass_its_own_end(self) -> None:
        left = Left.of(ENDS, self.at(50, 19), total=1_200)
        assert not left.is_passed
        assert str(left) == "1 of 1,200 records left to carry on"

    def test_a_partition_without_a_position_has_passed_nothing_unless_it_is_empty(self) -> None:
        left = Left.of(ENDS, self.at(10, -1))
        assert (left.records, left.not_begun) == (20, 1)
        assert Left.of({"orders": {0: 10, 1: 0}}, self.at(10, -1)).is_passed
        assert Left.of(ENDS, ()).not_begun == 2


class TestStatus:
    """The status line that a person uses to decide when to move a producer."""

    NOW_MS = 1_700_000_100_000
    SEEN: ClassVar = {"orders": {0: 10, 1: 10}}
    QUIET: ClassVar = Bridge(plan=PLAN.fingerprint, begun=True, quiet_since_ms=1_700_000_000_000, ends=SEEN)
    ENDED: ClassVar = QUIET.model_copy(update={"ended_at_ms": 1})

    def now(
        self, bridge: Bridge | None, *lags: int | None, state: str = "carrying", age_ms: int = 5_000
    ) -> ControlState:
        """A control state with partitions of 10 offsets and these lags (None: not begun).

        An earlier run has left old figures.
        """
        old = (PartitionProgress(topic="orders", partition=0, position=10, end=10),)
        result = JobResult(
            job="bridge", run="r", attempt=1, state=state, partitions=old, as_of_ms=self.NOW_MS - age_ms
        )
        journal = Journal(plan=PLAN, phase=Phase.COMPLETE)
        known = ControlState(journal=journal, bridge=bridge, results={"bridge": result} if state else {})
        progress = [
            PartitionProgress(
                topic="orders", partition=p, position=-1 if lag is None else 10 - lag, end=10, begin=0
            )
            for p, lag in enumerate(lags)
        ]
        return with_progress(known, progress, self.NOW_MS)

    def line(self, *given: Any, **changes: Any) -> str:
        text = status_view(Application.model_validate(ORDERED), self.now(*given, **changes), ()).text
        (found,) = [line for line in text.splitlines() if line.startswith("bridge: ")]
        return found

    def test_it_says_how_far_behind_the_bridge_is_before_a_producer_moves(self) -> None:
        expected = (
            "bridge: carries on, 4 offsets behind; no record in the old topic since 2023-11-14T22:13:20+00:00"
        )
        assert self.line(self.QUIET, 3, 1) == expected

    def test_records_that_came_after_the_last_look_are_no_silence(self) -> None:
        seen = self.QUIET.model_copy(update={"ends": {"orders": {0: 10, 1: 9}}})
        told = self.line(seen, 3, 1)
        assert told.endswith("; records have come into the old topic since 2023-11-14T22:13:20+00:00")

    def test_it_says_that_the_bridge_has_ended(self) -> None:
        assert self.line(self.ENDED, 0, 0, state="done").startswith("bridge: ended; no record")

    def test_a_partition_that_was_never_begun_is_not_0_behind(self) -> None:
        """Either the topic has grown, or the bridge was never started."""
        assert "0 offsets behind, 2 of 4 partitions not begun" in self.line(self.QUIET, 0, 0, None, None)
        never = self.line(None, None, None, state="")
        assert never.startswith("bridge: NOT AT WORK (not_begun), 2 of 2 partitions not begun;")

    @pytest.mark.parametrize(
        ("state", "age_ms", "told"),
        [
            ("failed", 5_000, "NOT AT WORK (failed)"),
            ("stopped", 5_000, "NOT AT WORK (stopped)"),
            ("carrying", 120_000, "NOT AT WORK (its last run said carrying, 120 s ago)"),
            ("running", NOW_MS, "NOT AT WORK (its last run said running, and has no progress yet)"),
        ],
    )
    def test_a_bridge_that_is_not_at_work_is_told_with_what_it_has_left_behind(
        self, state: str, age_ms: int, told: str
    ) -> None:
        line = self.line(self.QUIET, 7, 0, state=state, age_ms=age_ms)
        assert line.startswith(f"bridge: {told}, 7 offsets behind")

    def test_records_that_come_after_the_end_are_told(self) -> None:
        assert "NOT AT WORK (done), 2 offsets behind" in self.line(self.ENDED, 2, 0, state="done")

    def test_the_page_shows_the_same(self) -> None:
        control = self.now(self.QUIET, 7, None, age_ms=120_000)
        shown = job_progress(control.results["bridge"], PLAN)
        assert (shown.state, shown.lag) == ("not_at_work", 17)
        assert shown.detail == "its last run said carrying, 120 s ago"

    def test_an_expansion_without_a_bridge_says_nothing_of_an_earlier_one(self) -> None:
        state = ControlState(bridge=self.ENDED, journal=Journal(plan=plan_for("ordered"), phase=Phase.COMPLETE))
        assert "bridge:" not in status_view(Application.model_validate(ORDERED), state, ()).text
