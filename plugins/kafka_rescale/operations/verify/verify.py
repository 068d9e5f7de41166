"""The proof of an expansion: the journal tells what to compare, and the report goes to the control topic.

It may run while green is working. Blue's topics must still exist, and green's topics must have been kept from
compaction since the cutover. Both hold until the expansion is finished.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from kafka_rescale.core.control.acceptances import Acceptances
from kafka_rescale.core.control.journal import Captured, Journal, PartitionOffsets
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Outage, Refused, UnsafeState
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.core.verify.pairs import expansion_pair
from kafka_rescale.core.verify.report import Report, StoreReport, to_be_verified
from kafka_rescale.core.verify.start_offsets import check_start_offsets
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import TOPIC, ControlTopic
from kafka_rescale.kafka.reading.misrouted import NOTHING_ACCEPTED, look_for_misrouted
from kafka_rescale.kafka.writing.transactional_writer import TransactionalWriter
from kafka_rescale.spark.verify.compare import compare_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

PLANS_PER_STORE = 3
TOLD_SECONDS = 15.0
STORES_AT_ONCE = 4
"""Stores compared at a time. One store leaves cores idle while its jobs are planned and its last tasks end."""


def verify(
    spark: SparkSession, connection: KafkaConnection, application: str, *, clock_ms: Callable[[], int] = now_ms
) -> Report:
    """Compare blue and green over the whole state and write the report to the control topic.

    Called again after the end of the expansion, this returns the report that the expansion ended with.

    :param application: base name of the application.
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
    report = compare_expansion(spark, connection, journal, state.acceptances, clock_ms=clock_ms)
    writer.write(TOPIC, {f"{application}/{Concern.REPORT}": report.model_dump_json().encode()})
    return report


def compare_expansion(
    spark: SparkSession,
    connection: KafkaConnection,
    journal: Journal,
    acceptances: Acceptances = NOTHING_ACCEPTED,
    *,
    clock_ms: Callable[[], int] = now_ms,
) -> Report:
    """Compare everything that a journal names, without writing anything.

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
    ends = captured.changelog_ends, journal.green_ends
    with ThreadPoolExecutor(STORES_AT_ONCE) as pool:
        compared = [pool.submit(_store, spark, connection, admin, m, ends, clock_ms) for m in plan.changelogs]
        stores = await_all(compared, lambda: active_tasks(spark))
    report = Report(
        application=plan.application,
        blue=plan.blue,
        green=plan.green,
        generation=plan.generation,
        plan=plan.fingerprint,
        promotion=journal.promotion,
        passed=False,
        as_of_ms=as_of_ms,
        seconds=round(time.monotonic() - began, 3),
        start_offsets=start_offsets,
        stores=stores,
        inputs=inputs,
    )
    return report.concluded(acceptances)


def active_tasks(spark: SparkSession) -> tuple[int, int]:
    """Return how many tasks of Spark's present stages have ended, and how many there are."""
    tracker = spark.sparkContext.statusTracker()
    found = [info for i in tracker.getActiveStageIds() if (info := tracker.getStageInfo(i)) is not None]
    return sum(info.numCompletedTasks for info in found), sum(info.numTasks for info in found)


def await_all(
    compared: Sequence[Future[StoreReport]], tasks: Callable[[], tuple[int, int]], seconds: float = TOLD_SECONDS
) -> tuple[StoreReport, ...]:
    """Wait for the results of comparisons, and log meanwhile how many have ended.

    Several stores are compared at once, so the first may take as long as all of them. Spark's tasks show that it
    goes on.

    :param tasks: returns how many tasks of Spark's present stages have ended, and how many there are.
    :param seconds: between two lines.
    """
    began = time.monotonic()
    while left := wait(compared, timeout=seconds).not_done:
        done, took = len(compared) - len(left), time.monotonic() - began
        ended, of = tasks()
        log.info(
            "%d of %d stores are compared after %.0f s; %d of %d tasks of those at work have ended",
            done,
            len(compared),
            took,
            ended,
            of,
        )
    return tuple(each.result() for each in compared)


def _store(
    spark: SparkSession,
    connection: KafkaConnection,
    admin: ClusterAdmin,
    move: Move,
    ends: tuple[PartitionOffsets, PartitionOffsets],
    clock_ms: Callable[[], int],
) -> StoreReport:
    """Compare one store; plan the comparison again if retention has moved a log start past the planned begin."""
    names, (blue_ends, green_ends) = [move.source, move.target], ends
    topics = admin.describe_topics(names)
    _assert_whole(admin, names, {**blue_ends, **green_ends})
    begins = admin.begin_offsets(names)
    for _ in range(PLANS_PER_STORE):
        pair = expansion_pair(
            move,
            begins=begins,
            blue_ends=blue_ends,
            green_ends=green_ends,
            topics=topics,
            now_ms=clock_ms(),
        )
        try:
            report = compare_store(spark, connection.java(), pair)
        except Exception:
            planned, begins = begins, admin.begin_offsets(names)
            if begins == planned:
                raise
            log.warning("the log start of %s or %s has moved: planning the comparison again", *names)
        else:
            log.info("store %s: %s", move.store, "passed" if report.passed else dict(report.failures))
            return report
    raise Outage(
        f"topics {move.source!r} and {move.target!r}",
        found=f"log starts that moved during each of {PLANS_PER_STORE} comparisons",
        expected="one comparison between two deletions by retention",
        remedy="Raise segment.ms or log.retention.check.interval.ms for the time being, then run verify again.",
    )


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
    report = Report.model_validate(state.report) if state.report else None
    if report is None or report.plan != journal.plan.fingerprint:
        raise Refused(
            f"verification of {journal.plan.application}",
            found=f"an expansion in phase {journal.phase} without its report",
            expected="an expansion that has not been finished",
            remedy="Nothing can be compared any more: green's changelogs are compacted again.",
        )
    return report


def _assert_whole(admin: ClusterAdmin, names: list[str], ends: PartitionOffsets) -> None:
    present = admin.end_offsets(names)
    for topic in names:
        found, captured = present.get(topic), ends[topic]
        if found is None or any(found.get(p, 0) < end for p, end in captured.items()):
            raise UnsafeState(
                f"topic {topic!r}",
                found="no such topic" if found is None else f"ends {found}",
                expected=f"at least the captured ends {captured}",
                remedy="It was deleted or made anew since the cutover, so the move can't be proven any more.",
            )
