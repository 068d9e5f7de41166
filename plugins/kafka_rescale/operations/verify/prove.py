"""The proof before the promotion: the whole state is compared while the application works and the copies go on.

What is proven is that green has everything that blue had written up to the fence (``core.verify.proof``). The
fence is read between two moments of the running copy, and no unit of the copy stops (``kafka.copy.fences``). The
comparison is the same as in ``verify``, and ``spark.verify.live`` says why none of its findings is false. The job
notes part by part what has been compared. So a proof that was killed goes on with what is missing, up to the same
fence.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.records import Change
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.proof import Proof, needs_proof
from kafka_rescale.core.verify.report_text import render_proof
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.waiting import again_after_outage
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy.fences import green_now
from kafka_rescale.operations.verify.proof_pace import ProofPace
from kafka_rescale.operations.verify.proof_parts import ProofParts
from kafka_rescale.spark.jobs.job import Job, say
from kafka_rescale.spark.jobs.session import reading_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def prove(job: Job) -> None:
    """Compare all copies of an expansion that is about to be promoted, and record the proof.

    :raises UnsafeState: there are findings that nobody has accepted; the proof is recorded with them. Or the
        attempt was rolled back.
    :raises Fenced: the run has lost the lease, or its attempt is over.
    """
    began, journal = time.monotonic(), job.own_journal()
    journal.assert_not_rolled_back()
    job.put("running")
    if journal.phase is not Phase.WARMING or not needs_proof(journal.plan):
        say(f"{job.key}: nothing to prove in phase {journal.phase}")
        job.put("done")
        return
    a = job.arguments
    spark = reading_session(job.key, a.application, a.run, a.attempt)
    parts = again_after_outage(lambda: ProofParts.begun(job.connection, journal, job.control.read()))
    if parts.done:
        say(f"{job.key}: goes on with {len(parts.done)} of {len(parts.parts)} parts that are compared already")
    _compare(job, journal, spark, parts)
    found = Proof(
        application=journal.plan.application,
        plan=journal.plan.fingerprint,
        attempt=journal.attempt,
        seconds=round(time.monotonic() - began, 3),
        fences=parts.fences,
        stores=parts.reports,
        not_copied=journal.plan.not_copied,
    )
    _record(job, journal.plan, found.concluded(job.control.read().acceptances), began)


def _compare(job: Job, journal: Journal, spark: SparkSession, parts: ProofParts) -> None:
    """Compare what is left. Note the parts that are done while it runs, and once more if brokers don't answer.

    :raises Fenced: the run has lost the lease.
    """

    run = job.arguments.run
    with JournalFollower(job.connection, job.arguments.application, job.key) as follower:
        follower.first()
        pace = ProofPace(job, journal, follower, spark)

        def note() -> None:
            snapshot, progress = parts.snapshot, parts.progress
            records: Change = {Concern.PROOF_PROGRESS: progress, **pace.adapted()}
            job.put("running", snapshot, parts.told, records)

        try:
            compared = job.run_beside(
                lambda: parts.compare(spark, pace), note, until=lambda: follower.holder() != run
            )
        except Outage:
            note()
            raise
        finally:
            pace.is_over = True
        if compared is None or follower.holder() != run:
            raise job.superseded(follower.holder())


def _record(job: Job, plan: Plan, proof: Proof, began: float) -> None:
    """Record a proof in place of its parts.

    :raises UnsafeState: the proof has findings.
    :raises Outage: the copies were begun anew meanwhile, so the findings say nothing.
    """
    say(render_proof(proof))
    changes: Change = {Concern.PROOF: proof, Concern.PROOF_PROGRESS: None}
    if not proof.passed:
        _assert_whole(job, plan, proof.fences)
        job.put("running", records=changes)
        raise proof.refused(proof.unaccepted)
    job.finish(
        records=proof.records, began=began, changes=changes, as_of_ms=proof.fences.as_of_ms, detail=proof.told
    )


def _assert_whole(job: Job, plan: Plan, fences: Fences) -> None:
    if lost := fences.lost(*green_now(ClusterAdmin(job.connection), plan)):
        raise Outage(
            f"copies in {', '.join(fences.green_topics)}",
            found=lost,
            expected="copies that only go on while they are compared",
            remedy="Run again.",
        )
