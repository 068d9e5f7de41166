"""The steps in which the modes differ, in their order in a run; everything else is the same for both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from kafka_rescale.core.application.streams import Mode
from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.acceptances import Acceptances
from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.operations.cutover.jobs_beside import JobsBeside
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.timings import Timings


class ModeSteps(Protocol):
    """The steps that ``BlueGreen`` and ``InPlace`` both have.

    Each step may be killed at any instruction and called again.
    """

    mode: Mode
    delta: tuple[str, str]
    """The part of the pause in which ``await_delta`` waits, and what it waits for."""

    def prepare(
        self, rescale: Rescale, journal: Journal, jobs: JobsBeside, seen: dict[TopicPartition, int]
    ) -> None:
        """Wait until the jobs beside the cutover are ready, while the application runs.

        :param seen: next offset that is left to check, by partition, as this process knows it; in place, this
            step raises it, also if it fails.
        :raises UnsafeState: topics or groups that green needs are already in use, or what was rehearsed could
            not be moved any more.
        :raises Outage: a job is not ready in time, or has failed and is not tried again; green can't be started.
        """

    def was_stopped_before(self, journal: Journal) -> bool:
        """Whether a person stopped blue before the cutover, so that the cutover does not have to."""

    def await_delta(
        self,
        rescale: Rescale,
        journal: Journal,
        jobs: JobsBeside,
        seen: Mapping[TopicPartition, int],
        seconds_left: Callable[[], float],
    ) -> None:
        """Wait until blue's remaining records do not prevent the promotion any more.

        :param seen: as ``prepare`` has left it.
        :param seconds_left: how long the pause may still last; it raises when the time is over.
        :raises UnsafeState: a record can't be moved.
        :raises Outage: a job has not copied the rest in time, or is gone.
        """

    def jobs_behind(self, plan: Plan) -> list[str]:
        """Return the jobs that the application depends on from its promotion on."""

    def offsets_at_promotion(
        self, rescale: Rescale, journal: Journal, seconds_left: Callable[[], float]
    ) -> tuple[PartitionOffsets, dict[str, PartitionOffsets]]:
        """Return the log starts of green's topics, and the journal's fields about green, as far as they are known.

        :param seconds_left: as in ``await_delta``.
        """

    def before_start(self, rescale: Rescale, journal: Journal, timings: Timings) -> Journal:
        """Do what green needs between the promotion and its start.

        :param journal: in phase ``PROMOTED``.
        :param timings: the parts so far; this step adds its own.
        :raises Outage: a job is silent.
        :raises UnsafeState: a record has not been moved, or the application has run meanwhile.
        """

    def stop_unprepared(self, rescale: Rescale, plan: Plan) -> None:
        """Stop a green that runs without its offsets, or refuse to go on beside it.

        :raises UnsafeState: it can't be stopped, or has processed records.
        """

    def confirm_start(
        self,
        rescale: Rescale,
        journal: Journal,
        timings: Timings,
        *,
        was_running: bool,
        measure: Callable[[], Timings],
    ) -> Journal:
        """Check that green works, and record that it has been started.

        :param timings: the parts so far.
        :param was_running: whether an earlier try has started green.
        :param measure: watches green until it works, and returns the downtime in its parts.
        :raises UnsafeState: blue has come back beside it.
        """

    def assert_finishable(self, rescale: Rescale, journal: Journal, acceptances: Acceptances) -> None:
        """Check before the end of the run that blue is gone.

        :param acceptances: findings that a person has accepted.
        :raises UnsafeState: blue runs, or has written since it was proven gone.
        """

    def roll_back(self, rescale: Rescale, journal: Journal) -> None:
        """Undo the changes to topics from before the promotion."""

    def only_forward(self, plan: Plan) -> str:
        """Return why a promoted expansion is not rolled back, and what to do instead, in sentences."""

    def way_back(self, plan: Plan) -> str:
        """Return how to get back to the earlier count; empty if there is no way."""

    def assert_leaves_topics(self, plan: Plan) -> None:
        """Refuse to retire if the mode leaves no topics of earlier generations; called if no topics are found.

        :raises Refused: this mode leaves no such topics.
        """
