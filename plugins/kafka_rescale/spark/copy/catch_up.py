"""The job beside the cutover: it keeps the lag near zero, and finishes the copies when blue has stopped."""

from __future__ import annotations

from uuid import uuid4

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.transactions import wait_until_complete
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy.in_flight import prove
from kafka_rescale.kafka.copy.progress import CopyProgress
from kafka_rescale.kafka.copy.reset import restart_stale
from kafka_rescale.kafka.copy.units import divided, units_of
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.spark.copy.tasks import FINISHED, STOPPED, Follow
from kafka_rescale.spark.jobs.job import Job, say

BEAT_SECONDS = 2.0


def catch_up(job: Job) -> None:
    """Follow all changelogs. When the journal says so, copy the last delta and the records in flight.

    The records in flight are proven.

    :raises UnsafeState: the records in flight did not arrive as they were.
    """
    journal = job.journal()
    plan = journal.plan
    follow = Follow(job.connection, plan, journal.attempt, session=uuid4().hex)
    if _report_if_over(job, follow.verdict(journal)):
        return
    job.put("running")
    changelogs = plan.changelogs
    stale = restart_stale(
        job.connection, plan, changelogs, now_ms(), attempt=journal.attempt, prewarmed=bool(journal.was_warm)
    )
    for line in stale:
        say(line)
    progress = CopyProgress(job.connection, plan, changelogs)
    spark = job.spark()
    units = units_of(plan.moves)
    # An application without topics of its own has no units. An empty list of units also waits for the journal.
    lists = divided(units, job.parallelism(spark)) or [[]]
    spread = spark.sparkContext.parallelize(lists, len(lists))

    def state_of(snapshot: Snapshot) -> str:
        # Python workers take seconds to start. That must not become part of the pause.
        near = snapshot.within(job.arguments.acceptable_lag)
        return "ready" if near and progress.all_follow(follow.session, units) else "running"

    with JournalFollower(job.connection, plan.application) as follower:
        verdicts = job.run_reported(
            lambda: spread.mapPartitions(follow).collect(),
            progress,
            state_of=state_of,
            seconds=BEAT_SECONDS,
            is_paused=follower.is_paused,
        )
        journal = job.journal()
        if STOPPED in verdicts or _report_if_over(job, follow.verdict(journal)):
            job.put("stopped", detail=f"attempt {follow.attempt}")
            return
        # Give signs meanwhile: this may take a while, and the cutover gives up if the job is silent.
        job.run_beside(lambda: _conclude(job, journal), lambda: None, is_paused=follower.is_paused)
    job.put("done", progress.read(), detail=f"attempt {follow.attempt}")
    say(f"{job.key}: everything of attempt {follow.attempt} is in green")


def _conclude(job: Job, journal: Journal) -> None:
    # The cutover captures green's ends as soon as this job is done.
    wait_until_complete(ClusterAdmin(job.connection), [m.target for m in journal.plan.moves])
    assert journal.captured is not None
    for move in journal.plan.repartitions:
        count = prove(job.connection, move, journal.captured.in_flight[move.source])
        say(f"{job.key}: {count:,} records in flight are in {move.target}, per key and in order")


def _report_if_over(job: Job, verdict: str) -> bool:
    """Return whether there is nothing to do (any more); after a rollback, write a result that says so."""
    if verdict == STOPPED:
        say(f"{job.key}: stopped, the attempt was rolled back")
        job.put("stopped")
    return verdict in {STOPPED, FINISHED}
