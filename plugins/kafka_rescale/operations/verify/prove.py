"""The proof before the promotion: the whole state is compared while the application works and the copies go on.

What is proven is that green has everything that blue had written up to the fence (``core.verify.proof``). It is
read between two moments of the running copy, and no unit of it stops (``kafka.copy.fences``). The comparison is
that of ``verify``, and ``spark.verify.live`` says why none of its findings is false.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.errors import Fenced, Outage
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.proof import Proof, needs_proof
from kafka_rescale.core.verify.report import StoreReport
from kafka_rescale.core.verify.report_text import render_proof
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import again_after_outage, now_ms
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy.fences import read_fences, topics_now
from kafka_rescale.kafka.reading.later_keys import later_keys
from kafka_rescale.kafka.reading.source_rules import SourceRules
from kafka_rescale.operations.verify.stores import compare_as_planned, compare_stores
from kafka_rescale.spark.jobs.job import Job, say
from kafka_rescale.spark.jobs.session import reading_session
from kafka_rescale.spark.verify.live import BesideBlue, prove_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_rescale.core.verify.pairs import StorePair


def prove(job: Job) -> None:
    """Compare all copies of an expansion that is about to be promoted, and record the proof.

    :raises UnsafeState: there are findings that nobody has accepted; the proof is recorded with them.
    :raises Fenced: the run has lost the lease, or its attempt is over.
    """
    began, journal = time.monotonic(), job.journal()
    job.put("running")
    if journal.phase is not Phase.WARMING or not needs_proof(journal.plan):
        say(f"{job.key}: nothing to prove in phase {journal.phase}")
        job.put("done")
        return
    a = job.arguments
    spark = reading_session(job.key, a.application, a.run, a.attempt)
    fences = again_after_outage(lambda: read_fences(job.connection, journal.plan))
    with JournalFollower(job.connection, a.application) as follower:
        follower.first()
        stores = job.run_beside(
            lambda: compare_beside(spark, job.connection, journal, fences),
            lambda: job.put("running"),
            until=lambda: follower.holder() != a.run,
        )
        if stores is None or follower.holder() != a.run:
            raise Fenced(
                f"{job.key} of {a.run}",
                found=f"the lease held by {follower.holder() or 'nobody'}",
                expected="it to be held by this run: the expansion was rolled back, or another run has taken over",
                remedy="Nothing to do here; trigger the expansion again to prove its copies.",
            )
    found = Proof(
        application=journal.plan.application,
        plan=journal.plan.fingerprint,
        attempt=journal.attempt,
        seconds=round(time.monotonic() - began, 3),
        fences=fences,
        stores=stores,
    )
    proof = found.concluded(job.control.read().acceptances)
    say(render_proof(proof))
    if not proof.passed:
        _assert_whole(job.connection, fences)
        job.put("running", records={Concern.PROOF: proof})
        raise proof.refused(proof.unaccepted)
    job.finish(
        records=proof.records,
        began=began,
        changes={Concern.PROOF: proof},
        as_of_ms=fences.as_of_ms,
        detail=proof.told,
    )


def compare_beside(
    spark: SparkSession, connection: KafkaConnection, journal: Journal, fences: Fences
) -> tuple[StoreReport, ...]:
    """Compare every store up to its fence, beside a running copy."""
    admin = ClusterAdmin(connection)

    def compared(move: Move) -> StoreReport:
        source = move.source
        allowed = SourceRules.of(admin.describe_topics([source])[source]).tombstone_ms
        copied_ms = fences.copied_as_of_ms[source]

        def compare(pair: StorePair) -> StoreReport:
            beside = BesideBlue(
                later=lambda keys: later_keys(connection, source, fences.blue_ends[source], keys),
                lacks_deletions=lambda: allowed is not None and now_ms() - copied_ms > allowed,
            )
            return prove_store(spark, connection.java(), pair, beside)

        return compare_as_planned(
            admin,
            move,
            blue_ends=fences.blue_ends,
            green_ends=fences.green_ends,
            fence=fences.fence[source],
            clock_ms=now_ms,
            compare=compare,
        )

    return compare_stores(lambda: spark, journal.plan.changelogs, compared)


def _assert_whole(connection: KafkaConnection, fences: Fences) -> None:
    """Make sure that the copies were not begun anew meanwhile: then the differences say nothing.

    :raises Outage: they were.
    """
    if lost := fences.lost(*topics_now(ClusterAdmin(connection), fences.green_topics)):
        raise Outage(
            f"copies in {', '.join(fences.green_topics)}",
            found=lost,
            expected="copies that only go on while they are compared",
            remedy="Run again.",
        )
