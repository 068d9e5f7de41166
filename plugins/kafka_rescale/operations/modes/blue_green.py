"""Mode ``blue_green``: a next generation with topics of its own is built beside the running one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from kafka_rescale.core.application.streams import Mode
from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.acceptances import Acceptances
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.instances import blue, green
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.group_members import REJOIN_SECONDS
from kafka_rescale.operations.cutover.copies import await_copied, await_ready
from kafka_rescale.operations.cutover.held import assert_held_back, await_at_door, start_held
from kafka_rescale.operations.cutover.jobs_beside import JobsBeside
from kafka_rescale.operations.cutover.promotion import assert_unused, green_offsets
from kafka_rescale.operations.expansion.opening import Opening
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.survivors import assert_alone, assert_still
from kafka_rescale.operations.expansion.timings import Timings
from kafka_rescale.operations.expansion.warm_up_gate import assert_nothing_committed, close_or_refuse, cool_down


class BlueGreen:
    """The steps of ``mode: blue_green``; see ``ModeSteps``."""

    mode = Mode.BLUE_GREEN
    delta = ("delta", "the catch_up job to copy the last delta")

    def prepare(
        self, rescale: Rescale, journal: Journal, jobs: JobsBeside, seen: dict[TopicPartition, int]
    ) -> None:
        """Wait until the jobs beside the cutover are ready, and until held processes tell that they wait."""
        plan = journal.plan
        # A try that hangs has no right any more to start or to stop green.
        journal = Opening.take(rescale, journal).assert_held()
        if journal.gate_ends:
            # A person has marked `prewarm` or `await_window` as success while green restored.
            close_or_refuse(rescale, journal)
        _assert_green_is_cold(rescale, journal)
        assert_unused(rescale, plan)
        journal = start_held(rescale, journal)
        await_ready(jobs, "catch_up", "say that it is near the ends", "Look at the log of the catch_up task.")
        if plan.bridges:
            remedy = f"Unpause bridge_{plan.application}, and look at the log of its bridge task."
            await_ready(jobs, "bridge", "be up", remedy)
        await_at_door(rescale, journal)

    def was_stopped_before(self, journal: Journal) -> bool:
        """Return False: blue is stopped again in any case, and a rollback starts it."""
        return False

    def await_delta(
        self,
        rescale: Rescale,
        journal: Journal,
        jobs: JobsBeside,
        seen: Mapping[TopicPartition, int],
        seconds_left: Callable[[], float],
    ) -> None:
        """Wait until ``catch_up`` has copied the last delta."""
        await_copied(jobs, journal, seconds_left())

    def jobs_behind(self, plan: Plan) -> list[str]:
        """Return the bridge, if there is one."""
        return ["bridge"] if plan.bridges else []

    def offsets_at_promotion(
        self, rescale: Rescale, journal: Journal, seconds_left: Callable[[], float]
    ) -> tuple[PartitionOffsets, dict[str, PartitionOffsets]]:
        """Return the begins and ends of green's topics, and the offsets that it starts from."""
        assert_held_back(rescale, journal)
        return green_offsets(rescale, journal, seconds_left())

    def before_start(self, rescale: Rescale, journal: Journal, timings: Timings) -> Journal:
        """Do nothing: the copies are complete."""
        return journal

    def stop_unprepared(self, rescale: Rescale, plan: Plan) -> None:
        """Stop green: a ``start_gated`` command that outlived its killed task has started it."""
        cool_down(rescale, plan)

    def confirm_start(
        self,
        rescale: Rescale,
        journal: Journal,
        timings: Timings,
        *,
        was_running: bool,
        measure: Callable[[], Timings],
    ) -> Journal:
        """Check that green works, and that blue does not come back beside it."""
        # Instances that were stopped since an earlier try may have left dead members.
        rescale.admin.remove_members(journal.plan.blue)
        emptied = time.monotonic()
        if not (was_running and "total" in timings):
            timings = measure()
            # The pause is over, whatever the result of the wait is.
            rescale.advance(Phase.PROMOTED, timings=timings)
        time.sleep(max(0.0, REJOIN_SECONDS - (time.monotonic() - emptied)))
        assert_alone(rescale, journal.plan)
        return rescale.advance(Phase.STARTED, timings=timings)

    def assert_finishable(self, rescale: Rescale, journal: Journal, acceptances: Acceptances) -> None:
        """Check that blue neither runs nor has written since it was proven gone."""
        assert_alone(rescale, journal.plan)
        assert_still(rescale.admin, journal, acceptances)

    def roll_back(self, rescale: Rescale, journal: Journal) -> None:
        """Do nothing: the copies stay, and the next attempt goes on with them."""

    def only_forward(self, plan: Plan) -> str:
        """Say that green owns the inputs, and how to end the expansion."""
        return (
            f"not rolled back: {plan.green} owns the inputs since its promotion; only forward. End this "
            "expansion: clear the failed task; findings of verify that can't be mended, a person can accept "
            f"(`python -m kafka_rescale accept FILE`). {self.way_back(plan)}"
        )

    def way_back(self, plan: Plan) -> str:
        """Say that another expansion leads back."""
        before = blue(plan).partitions
        return (
            f"Then back to {before} partitions: trigger expand_{plan.application} with target {before}; "
            f"`python -m kafka_rescale plan FILE --target {before}` says what hinders it (docs/way-back.md)"
        )

    def assert_leaves_topics(self, plan: Plan) -> None:
        """Allow it: if no topics are left, the earlier generations were retired before."""


def _assert_green_is_cold(rescale: Rescale, journal: Journal) -> None:
    plan = journal.plan
    # Processes that an earlier try of this cutover holds at the door do run, but are in no group.
    is_there = rescale.admin.describe_group(plan.green).is_live if journal.held else rescale.is_alive(green(plan))
    if is_there:
        raise UnsafeState(
            f"application {plan.green}",
            found="a running instance",
            expected="no running instance before the promotion, behind the warm-up gate or not",
            remedy=f"Stop it; it would process what {plan.blue} still owns, or never process anything.",
        )
    assert_nothing_committed(rescale, plan)
