"""The pace of a proof: its parts wait while it is paused, and read within the limit that holds when they begin."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.records import Change
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy.harm import Harm
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.spark.copy.pacer import Pacer
from kafka_rescale.spark.jobs.job import Job
from kafka_rescale.spark.jobs.session import running_tasks
from kafka_rescale.spark.verify.paced import PacedReading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAIT_SECONDS = 0.5
NOTHING = Snapshot((), 0, 0.0)


class ProofPace:
    """The pace of one attempt at a proof.

    :param follower: has read all of the control topic; only the thread that calls ``adapted`` uses it.
    """

    def __init__(self, job: Job, journal: Journal, follower: JournalFollower, spark: SparkSession) -> None:
        plan, tasks = journal.plan, spark.sparkContext.defaultParallelism
        harm = Harm(job.connection, plan, plan.blue)
        self._job, self.is_over = job, False
        self._pacer = Pacer(job, plan.fingerprint, follower, harm, tasks, lambda: running_tasks(spark))
        self._paced = self._pacer.begin()

    def adapted(self) -> Change:
        """Return the rate from now on, to be written with a report."""
        return self._pacer.adapted(NOTHING)

    def await_turn(self) -> PacedReading | None:
        """Wait until the proof isn't paused, and return what slows a part down; None if nothing does.

        A part that has begun without a limit ends without a limit: nothing on its rows' way could hold them back.
        """
        while self._pacer.rate.is_paused and not self.is_over:
            time.sleep(WAIT_SECONDS)
        if self._pacer.rate.share is None:
            return None
        return PacedReading(self._job.connection, self._job.arguments.application, self._paced)
