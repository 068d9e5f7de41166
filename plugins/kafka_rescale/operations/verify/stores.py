"""Comparing the stores of an expansion: several at a time, each planned again if retention is faster."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.core.verify.pairs import StorePair, expansion_pair
from kafka_rescale.core.verify.report import StoreReport
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
log = logging.getLogger(__name__)

PLANS_PER_STORE = 3
TOLD_SECONDS = 15.0
STORES_AT_ONCE = 4
"""Stores compared at a time. One store leaves cores idle while its jobs are planned and its last tasks end."""


def compare_each(
    session: Callable[[], SparkSession], items: Sequence[T], compared: Callable[[T], StoreReport]
) -> tuple[StoreReport, ...]:
    """Compare stores or parts of them, some at a time, and return the reports in their order.

    :param session: returns Spark's session; without items, it is not called.
    """
    if not items:
        return ()
    spark = session()
    with ThreadPoolExecutor(STORES_AT_ONCE) as pool:
        return await_all([pool.submit(compared, item) for item in items], lambda: active_tasks(spark))


def compare_as_planned(
    admin: ClusterAdmin,
    move: Move,
    *,
    blue_ends: PartitionOffsets,
    green_ends: PartitionOffsets,
    fence: Mapping[int, int] | None = None,
    clock_ms: Callable[[], int],
    compare: Callable[[StorePair], StoreReport],
) -> StoreReport:
    """Compare one store; plan the comparison again if retention has moved a log start past the planned begin.

    :param fence: see ``StorePair``.
    :param compare: reads and compares the two logs.
    :raises UnsafeState: a topic is not the one whose ends these are.
    :raises Outage: retention was faster each time.
    """
    names = [move.source, move.target]
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
            fence=fence,
        )
        try:
            report = compare(pair)
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
        remedy="Raise segment.ms or log.retention.check.interval.ms for the time being, then run it again.",
    )


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


def _assert_whole(admin: ClusterAdmin, names: list[str], ends: PartitionOffsets) -> None:
    present = admin.end_offsets(names)
    for topic in names:
        found, captured = present.get(topic), ends[topic]
        if found is None or any(found.get(p, 0) < end for p, end in captured.items()):
            raise UnsafeState(
                f"topic {topic!r}",
                found="no such topic" if found is None else f"ends {found}",
                expected=f"at least the captured ends {captured}",
                remedy="It was deleted or made anew since these ends were read: nothing can be proven any more.",
            )
