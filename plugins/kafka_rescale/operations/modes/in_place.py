"""Mode ``in_place``: the application's own topics grow while it is stopped; only keys that move are copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafka_rescale.core.application.streams import Mode
from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.acceptances import Acceptances
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.operations.cutover.copies import await_ready
from kafka_rescale.operations.cutover.growing import (
    assert_movable,
    assert_rehearsal_holds,
    look_ahead,
    started_elsewhere,
)
from kafka_rescale.operations.cutover.in_place import grow_and_move
from kafka_rescale.operations.cutover.jobs_beside import JobsBeside
from kafka_rescale.operations.expansion.compaction import release_compaction
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.timings import Timings


class InPlace:
    """The steps of ``mode: in_place``; see ``ModeSteps``."""

    mode = Mode.IN_PLACE
    delta = ("rehearse", "the check of the records that the rehearsal has not seen")

    def prepare(
        self, rescale: Rescale, journal: Journal, jobs: JobsBeside, seen: dict[TopicPartition, int]
    ) -> None:
        """Check most of what the rehearsal has not seen, and wait until ``move`` is up.

        Starting its driver after the stop would take most of the pause. Then check that the rehearsal still holds.
        """
        if journal.plan.growing:
            look_ahead(rescale, journal, seen)
            await_ready(jobs, "move", "be up", "Look at the log of the move task.")
            assert_rehearsal_holds(rescale, journal)

    def was_stopped_before(self, journal: Journal) -> bool:
        """Whether the user has stopped the application: then a rollback must not start it.

        The group can't tell: it keeps classic members after a clean close. If a member lives, the proof that the
        application is gone finds it.
        """
        return not journal.stop_asked and not journal.blue_ran

    def await_delta(
        self,
        rescale: Rescale,
        journal: Journal,
        jobs: JobsBeside,
        seen: Mapping[TopicPartition, int],
        seconds_left: Callable[[], float],
    ) -> None:
        """Check the records that nobody has looked at yet.

        They are moved after the promotion, because they need new partitions, which can't be removed again.
        """
        assert_movable(rescale, journal, seen, seconds_left)

    def jobs_behind(self, plan: Plan) -> list[str]:
        """Return ``move``, if records move."""
        return ["move"] if plan.growing else []

    def offsets_at_promotion(
        self, rescale: Rescale, journal: Journal, seconds_left: Callable[[], float]
    ) -> tuple[PartitionOffsets, dict[str, PartitionOffsets]]:
        """Return nothing: the ends and the start are known only when everything has been moved."""
        return {}, {}

    def before_start(self, rescale: Rescale, journal: Journal, timings: Timings) -> Journal:
        """Grow the application's own topics, and wait until ``move`` has moved their records."""
        return grow_and_move(rescale, journal, timings)

    def stop_unprepared(self, rescale: Rescale, plan: Plan) -> None:
        """Refuse: this expansion has not started the application, and it may have processed records."""
        raise started_elsewhere(
            plan,
            "a running instance without the offsets that it is to start from",
            "Its offsets need not be set back. The records in flight are in its repartition topics twice by now, "
            "and it may have processed them twice: look at its output",
        )

    def confirm_start(
        self,
        rescale: Rescale,
        journal: Journal,
        timings: Timings,
        *,
        was_running: bool,
        measure: Callable[[], Timings],
    ) -> Journal:
        """Check that the application works."""
        return rescale.advance(Phase.STARTED, timings=measure())

    def assert_finishable(self, rescale: Rescale, journal: Journal, acceptances: Acceptances) -> None:
        """Check nothing: there is no other generation that could run."""

    def roll_back(self, rescale: Rescale, journal: Journal) -> None:
        """Release the compaction of the application's own topics."""
        release_compaction(rescale, journal)

    def only_forward(self, plan: Plan) -> str:
        """Say that topics can't shrink."""
        return (
            f"not rolled back: the topics of {plan.green} grow, and none can shrink; only forward. Clear "
            "the failed task, or trigger the expansion again: it goes on where it is"
        )

    def way_back(self, plan: Plan) -> str:
        """Return nothing: topics can't shrink."""
        return ""

    def assert_leaves_topics(self, plan: Plan) -> None:
        """Refuse: the running generation has the same topics and the same group as the one before."""
        raise Refused(
            f"application {plan.application}",
            found="an expansion in place, whose topics are those of the running application",
            expected="an earlier generation with topics of its own",
            remedy="Nothing has to be deleted, and nothing was deleted.",
        )
