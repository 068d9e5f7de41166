"""The proof of an expansion: the journal tells what to compare, and the report goes to the control topic.

Stores that were compared before the promotion are not compared again, unless a person asks for it. It may run
while green is working. Blue's topics must still exist, and green's topics must have been kept from compaction
since the cutover. Both hold until the expansion is finished.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_rescale.core.control.acceptances import Acceptances
from kafka_rescale.core.control.journal import Captured, Journal
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Refused, UnsafeState
from kafka_rescale.core.verify.how_far import PartState, told_of
from kafka_rescale.core.verify.parts import Part, together, whole_stores
from kafka_rescale.core.verify.promotable import compared_before
from kafka_rescale.core.verify.report import Report, StoreReport, is_about, to_be_verified
from kafka_rescale.core.verify.start_offsets import check_start_offsets
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import TOPIC, ControlTopic
from kafka_rescale.kafka.copy.fences import green_now
from kafka_rescale.kafka.reading.misrouted import NOTHING_ACCEPTED, look_for_misrouted
from kafka_rescale.kafka.writing.transactional_writer import TransactionalWriter
from kafka_rescale.operations.verify.aborted import look_for_aborted
from kafka_rescale.operations.verify.readings import Readings
from kafka_rescale.operations.verify.stores import compare_as_planned, compare_each
from kafka_rescale.spark.verify.compare import compare_stores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_rescale.core.verify.pairs import StorePair

NOTHING_COMPARED: Mapping[str, StoreReport] = {}


def verify(
    session: Callable[[], SparkSession],
    connection: KafkaConnection,
    application: str,
    *,
    whole: bool = False,
    clock_ms: Callable[[], int] = now_ms,
) -> Report:
    """Check what an expansion has left, and write the report to the control topic.

    Called again after the end of the expansion, this returns the report that the expansion ended with.

    :param session: returns a Spark session; it is called only if there is a store to compare.
    :param application: base name of the application.
    :param whole: whether to compare the whole state, including stores that were compared before the promotion.
    :param clock_ms: wall clock in ms since the epoch.
    :raises Refused: there is nothing to verify yet, or nothing any more.
    :raises Fenced: a newer attempt has begun.
    """
    # Take the transactional id before reading: if two attempts run at once, the report of the newer one stands.
    writer = TransactionalWriter(connection, f"kafka-rescale-{application}/{Concern.REPORT}")
    state = ControlTopic(connection, application).read()
    journal = to_be_verified(application, state.journal)
    if journal.is_verified:
        return _former(journal, state)
    before = {}
    if not whole:
        before = compared_before(journal, state, *green_now(ClusterAdmin(connection), journal.plan))
    report = compare_expansion(session, connection, journal, state.acceptances, before=before, clock_ms=clock_ms)
    writer.write(TOPIC, {f"{application}/{Concern.REPORT}": report.model_dump_json().encode()})
    return report


def compare_expansion(
    session: Callable[[], SparkSession],
    connection: KafkaConnection,
    journal: Journal,
    acceptances: Acceptances = NOTHING_ACCEPTED,
    *,
    before: Mapping[str, StoreReport] = NOTHING_COMPARED,
    clock_ms: Callable[[], int] = now_ms,
) -> Report:
    """Compare everything that a journal names, without writing anything.

    :param session: see ``verify``.
    :param before: reports of the stores that were compared before the promotion.
    :param acceptances: findings that a person has accepted; they are reported, but don't make the proof fail.
    """
    began, as_of_ms = time.monotonic(), clock_ms()
    plan, captured, admin = journal.plan, _captured(journal), ClusterAdmin(connection)
    start_offsets = check_start_offsets(
        plan.inputs,
        stopped=captured.committed,
        started=journal.green_start,
        # Ask by partition: for a whole group, brokers leave out topics that the asker may not see.
        committed=admin.committed(plan.green, {topic: len(of) for topic, of in journal.green_start.items()}),
    )
    inputs = look_for_misrouted(connection, journal, acceptances)
    left = {move.store: move for move in plan.changelogs if move.store not in before}
    readings, done = Readings(), set[str]()

    def compared(batch: Sequence[Part]) -> Sequence[StoreReport]:
        def compare(pairs: Sequence[StorePair]) -> Sequence[StoreReport]:
            spark = session()
            readings.begin(spark.sparkContext, [part.name for part in batch], pairs)
            return compare_stores(spark, connection.java(), pairs, clock_ms)

        reports = compare_as_planned(
            admin,
            [left[part.store] for part in batch],
            blue_ends=captured.changelog_ends,
            green_ends=journal.green_ends,
            clock_ms=clock_ms,
            compare=compare,
        )
        done.update(part.name for part in batch)
        return reports

    parts = whole_stores(left.values(), journal.green_ends)
    found = compare_each(together(parts, left), compared, lambda: _told(parts, readings, done))
    reports = {**before, **{each.store: each for each in found}}
    seconds = round(time.monotonic() - began, 3)
    # Behind the comparison, because it may wait for green.
    aborted = look_for_aborted(connection, journal)
    report = Report(
        application=plan.application,
        blue=plan.blue,
        green=plan.green,
        generation=plan.generation,
        plan=plan.fingerprint,
        promotion=journal.promotion,
        passed=False,
        as_of_ms=as_of_ms,
        seconds=seconds,
        start_offsets=start_offsets,
        stores=tuple(reports[move.store] for move in plan.changelogs),
        compared_before=tuple(before),
        not_copied=plan.not_copied,
        inputs=inputs,
        aborted=aborted,
    )
    return report.concluded(acceptances)


def _told(parts: Sequence[Part], readings: Readings, done: Collection[str]) -> str:
    return told_of([PartState(part, readings.share(part.name), part.name in done) for part in parts])


def _captured(journal: Journal) -> Captured:
    if journal.captured is None or (journal.plan.moves and not journal.green_ends):
        raise UnsafeState(
            f"journal of {journal.plan.application}",
            found="no captured offsets",
            expected="blue's ends and green's, recorded by the cutover",
            remedy="The journal was written by something else; the two generations can't be told apart by offset.",
        )
    return journal.captured


def _former(journal: Journal, state: ControlState) -> Report:
    """Return the report of a finished expansion: compaction may have removed green's records since."""
    if not is_about(state.report, journal):
        raise Refused(
            f"verification of {journal.plan.application}",
            found=f"an expansion in phase {journal.phase} without its report",
            expected="an expansion that has not been finished",
            remedy="Nothing can be compared any more: green's changelogs are compacted again.",
        )
    return Report.model_validate(state.report)
