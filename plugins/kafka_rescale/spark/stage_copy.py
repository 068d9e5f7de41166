"""What restore and warm_up begin with: the changelogs of one stage, and whether there is anything to copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_rescale.core.journal import Phase
from kafka_rescale.core.plan import Plan
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.copy_progress import CopyProgress
from kafka_rescale.kafka.copy_reset import restart_stale
from kafka_rescale.kafka.copy_units import CopyUnit, units_of
from kafka_rescale.kafka.waiting import now_ms
from kafka_rescale.spark.copy_tasks import CopyToEnds
from kafka_rescale.spark.job import Job, say
from kafka_rescale.spark.snapshot_seed import candidates_for


@dataclass(frozen=True)
class StageCopy:
    """The copies of one stage, ready to run.

    :param units: one per source partition.
    """

    connection: KafkaConnection
    plan: Plan
    units: Sequence[CopyUnit]
    progress: CopyProgress

    @classmethod
    def begin(cls, job: Job) -> StageCopy | None:
        """Return the copies of the job's stage, stale ones emptied; or None, and the job's result is written.

        :raises InvalidInput: the plan has no such stage.
        """
        journal = job.journal()
        plan = journal.plan
        moves = plan.stage(job.arguments.stage or 0).changelogs
        job.put("running")
        if journal.phase not in {Phase.WARMING, Phase.ROLLED_BACK} or not moves:
            say(f"{job.key}: nothing to copy in phase {journal.phase}")
            job.put("done")
            return None
        for line in restart_stale(job.connection, plan, moves, now_ms()):
            say(line)
        return cls(job.connection, plan, units_of(moves), CopyProgress(job.connection, plan, moves))

    def task(self, snapshots: str = "") -> CopyToEnds:
        """Return the work of a Spark task: to the ends that the sources have now.

        :param snapshots: location of snapshots that copies which have not begun may begin with.
        """
        asked_ms = now_ms()
        moves = list(dict.fromkeys(unit.move for unit in self.units))
        found = candidates_for(self.connection, snapshots, self.plan.application, moves)
        for line in found.remarks:
            say(line)
        ends = self.progress.ends()
        return CopyToEnds(self.connection, self.plan, ends, asked_ms, seeds=found.by_source)
