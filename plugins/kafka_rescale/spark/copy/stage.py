"""How restore and warm_up begin: find the changelogs of one stage, and whether there is anything to copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import again_after_outage, now_ms
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy.deadline import Deadline
from kafka_rescale.kafka.copy.disk_watch import DiskWatch
from kafka_rescale.kafka.copy.ended import EndedCopies
from kafka_rescale.kafka.copy.harm import Harm
from kafka_rescale.kafka.copy.progress import CopyProgress
from kafka_rescale.kafka.copy.reset import restart_stale
from kafka_rescale.kafka.copy.seeding import Begun
from kafka_rescale.kafka.copy.units import CopyUnit, units_of
from kafka_rescale.spark.copy.pacer import Pacer
from kafka_rescale.spark.copy.tasks import CopyToEnds
from kafka_rescale.spark.jobs.job import Job, say
from kafka_rescale.spark.jobs.session import running_tasks
from kafka_rescale.spark.snapshots.seed import candidates_for


@dataclass(frozen=True)
class StageCopy:
    """The copies of one stage, ready to run.

    :param units: one per source partition.
    :param harm: reads how the cluster is, for the pace of all rounds.
    :param disks: watches the brokers' disks, for the pace of all rounds.
    :param deadline: tells whether the copies will be too old when they end.
    """

    connection: KafkaConnection
    plan: Plan
    units: Sequence[CopyUnit]
    progress: CopyProgress
    harm: Harm
    disks: DiskWatch
    deadline: Deadline

    @classmethod
    def begin(cls, job: Job) -> StageCopy | None:
        """Empty the stale copies of the job's stage, and return all of its copies.

        If there is nothing to copy, write the job's result and return None.

        :raises InvalidInput: the plan has no such stage.
        :raises Fenced: the run has lost the lease.
        :raises UnsafeState: the attempt was rolled back.
        """
        journal = job.own_journal(needs_lease=True)
        journal.assert_not_rolled_back()
        plan = journal.plan
        moves = plan.stage(job.arguments.stage or 0).changelogs
        job.put("running")
        if journal.phase is not Phase.WARMING or not moves:
            say(f"{job.key}: nothing to copy in phase {journal.phase}")
            job.put("done")
            return None
        stale = again_after_outage(
            lambda: restart_stale(job.connection, plan, moves, now_ms(), attempt=journal.attempt)
        )
        for line in stale:
            say(line)
        progress = CopyProgress(job.connection, plan, moves)
        harm = Harm(job.connection, plan, plan.blue, progress)
        admin, names = ClusterAdmin(job.connection), [m.source for m in moves]
        sources = again_after_outage(lambda: admin.existing_topics(names))
        begins = again_after_outage(lambda: admin.begin_offsets(names))
        deadline = Deadline(sources, begins, has_seeds=bool(job.arguments.snapshots))
        disks = DiskWatch(job.connection, plan)
        return cls(job.connection, plan, units_of(moves), progress, harm, disks, deadline)

    def task(self, snapshots: str = "") -> CopyToEnds:
        """Return the work of a Spark task: copy up to the ends that the sources have now.

        :param snapshots: location of snapshots. Copies that have not begun yet may begin with them.
        """
        asked_ms = now_ms()
        moves = list(dict.fromkeys(unit.move for unit in self.units))
        found = candidates_for(self.connection, snapshots, self.plan.application, moves)
        for line in found.remarks:
            say(line)
        ends = again_after_outage(self.progress.ends)
        return CopyToEnds(self.connection, self.plan, ends, asked_ms, seeds=found.by_source)

    def run(self, job: Job, task: CopyToEnds, lists: Sequence[list[CopyUnit]]) -> list[Begun]:
        """Run the work on lists of units in Spark and report it, for as long as this run has the lease.

        If the job did not look at the lease, a copy of terabytes would go on for hours after a person has rolled
        back, perhaps to spare the brokers.

        :param lists: one per Spark task.
        :raises Fenced: the run has lost the lease; what is copied stays.
        :raises RescaleError: the error that a task raised.
        """
        spark = job.spark()
        spread = spark.sparkContext.parallelize(lists, len(lists))
        with JournalFollower(job.connection, job.arguments.application, job.key) as follower:
            follower.first()
            at_once = min(len(lists), job.parallelism(spark))
            pacer = Pacer(
                job, self.plan.fingerprint, follower, self.harm, at_once, lambda: running_tasks(spark), self.disks
            )
            paced = replace(task, paced=pacer.begin())
            self.progress.note_rest(pacer.is_paused)
            ended = EndedCopies(self.connection, self.plan, lists, task.ends)

            def beat() -> None:
                job.report(self.progress, lambda _: "running", pacer.adapted, self.deadline.told)
                self.progress.note_rest(pacer.is_paused)
                ended.keep()

            done: list[Begun] | None = job.run_beside(
                lambda: spread.mapPartitions(paced).collect(),
                beat,
                until=lambda: not _has_lease(job, follower),
            )
            if done is None:
                lost = job.superseded(follower.holder())
                # This overwrites no result of a newer run, although this attempt has left results before.
                job.put("failed", detail=f"{type(lost).__name__}: {lost}")
                raise lost
        return done


def _has_lease(job: Job, follower: JournalFollower) -> bool:
    return follower.holder() == job.arguments.run
