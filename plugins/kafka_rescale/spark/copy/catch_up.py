"""The job beside the cutover: it keeps the lag near zero, and finishes the copies when blue has stopped."""

from __future__ import annotations

from uuid import uuid4

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.verify.proof import needs_proof
from kafka_rescale.core.verify.rolling_proof import RollingProof
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.transactions import wait_until_complete
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import Change
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy.in_flight import prove
from kafka_rescale.kafka.copy.progress import CopyProgress
from kafka_rescale.kafka.copy.reset import restart_stale
from kafka_rescale.kafka.copy.units import divided, units_of
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.kafka.verify.rolling import RollingComparison
from kafka_rescale.spark.copy.tasks import FINISHED, STOPPED, Follow
from kafka_rescale.spark.jobs.job import Job, say

BEAT_SECONDS = 2.0


def catch_up(job: Job) -> None:
    """Follow all changelogs. When the journal says so, copy the last delta and the records in flight.

    What is copied is compared meanwhile, and the last delta and the records in flight before this job is done.

    :raises UnsafeState: something did not arrive as it was.
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

    rolling = RollingComparison(job.connection, journal) if needs_proof(plan) else None

    def state_of(snapshot: Snapshot) -> str:
        # Python workers take seconds to start. That must not become part of the pause.
        near = snapshot.within(job.arguments.acceptable_lag) and progress.all_follow(follow.session, units)
        # Whoever waits for this job may begin a proof next, which has to be continued from its fence on.
        return "ready" if near and (rolling is None or rolling.has_begun) else "running"

    def newest() -> Change:
        found = rolling.take() if rolling else None
        return {Concern.ROLLING_PROOF: found} if found else {}

    if rolling:
        rolling.start()
    with JournalFollower(job.connection, plan.application) as follower:
        verdicts = job.run_reported(
            lambda: spread.mapPartitions(follow).collect(),
            progress,
            state_of=state_of,
            seconds=BEAT_SECONDS,
            is_paused=follower.is_paused,
            records=newest,
        )
        journal = job.journal()
        if STOPPED in verdicts or _report_if_over(job, follow.verdict(journal)):
            job.put("stopped", detail=f"attempt {follow.attempt}")
            return
        # Give signs meanwhile: this may take a while, and the cutover gives up if the job is silent.
        proof = job.run_beside(
            lambda: _conclude(job, journal, rolling), lambda: None, is_paused=follower.is_paused
        )
    changes: Change = {Concern.ROLLING_PROOF: proof} if proof else {}
    if proof and (unaccepted := proof.unaccepted(job.control.read().acceptances)):
        job.put("running", records=changes)
        raise proof.refused(unaccepted)
    job.put("done", progress.read(), detail=f"attempt {follow.attempt}", records=changes)
    say(f"{job.key}: everything of attempt {follow.attempt} is in green")


def _conclude(job: Job, journal: Journal, rolling: RollingComparison | None) -> RollingProof | None:
    # The cutover captures green's ends as soon as this job is done.
    wait_until_complete(ClusterAdmin(job.connection), [m.target for m in journal.plan.moves])
    assert journal.captured is not None
    proof = rolling.finish(journal.captured.changelog_ends) if rolling else None
    if proof:
        say(f"{job.key}: {proof.told}")
    for move in journal.plan.repartitions:
        count = prove(job.connection, move, journal.captured.in_flight[move.source])
        say(f"{job.key}: {count:,} records in flight are in {move.target}, per key and in order")
    return proof


def _report_if_over(job: Job, verdict: str) -> bool:
    """Return whether there is nothing to do (any more); after a rollback, write a result that says so."""
    if verdict == STOPPED:
        say(f"{job.key}: stopped, the attempt was rolled back")
        job.put("stopped")
    return verdict in {STOPPED, FINISHED}
