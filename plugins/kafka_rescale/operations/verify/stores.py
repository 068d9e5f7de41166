"""Comparing the stores of an expansion, some in one plan. If retention is faster than a plan, it is made again."""

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

T = TypeVar("T")
log = logging.getLogger(__name__)

if TYPE_CHECKING:
    Compare = Callable[[Sequence[StorePair]], Sequence[StoreReport]]

PLANS = 3
TOLD_SECONDS = 15.0
BATCHES_AT_ONCE = 2
"""Plans at a time. One plan leaves cores idle while it is made and while its last tasks end."""


def compare_each(
    batches: Sequence[Sequence[T]],
    compared: Callable[[Sequence[T]], Sequence[StoreReport]],
    told: Callable[[], str],
) -> tuple[StoreReport, ...]:
    """Compare batches of stores or of parts of them, some at a time, and return the reports in their order.

    :param told: returns how far the comparison is, for the log.
    """
    with ThreadPoolExecutor(BATCHES_AT_ONCE) as pool:
        found = await_all([pool.submit(compared, batch) for batch in batches], told)
    return tuple(report for reports in found for report in reports)


def compare_as_planned(
    admin: ClusterAdmin,
    moves: Sequence[Move],
    *,
    blue_ends: PartitionOffsets,
    green_ends: PartitionOffsets,
    fences: Mapping[str, Mapping[int, int]] | None = None,
    clock_ms: Callable[[], int],
    compare: Compare,
) -> tuple[StoreReport, ...]:
    """Compare some stores; plan the comparison again if retention has moved a log start past the planned begin.

    :param fences: by blue's topics; see ``StorePair``.
    :param compare: reads and compares the logs; the reports are in the order of the pairs.
    :raises UnsafeState: a topic was made anew since these ends were read.
    :raises ClusterOutage: a topic was deleted.
    :raises Outage: retention was faster each time.
    """
    names = [name for move in moves for name in (move.source, move.target)]
    topics = admin.existing_topics(names)
    _assert_whole(admin, names, {**blue_ends, **green_ends})
    begins = admin.begin_offsets(names)
    for _ in range(PLANS):
        pairs = [
            expansion_pair(
                move,
                begins=begins,
                blue_ends=blue_ends,
                green_ends=green_ends,
                topics=topics,
                now_ms=clock_ms(),
                fence=None if fences is None else fences[move.source],
            )
            for move in moves
        ]
        try:
            reports = compare(pairs)
        except Exception:
            planned, begins = begins, admin.begin_offsets(names)
            if begins == planned:
                raise
            moved = [name for name in names if begins[name] != planned[name]]
            log.warning("the log starts of %s have moved: planning the comparison again", ", ".join(moved))
        else:
            for report in reports:
                log.info("store %s: %s", report.store, "passed" if report.passed else dict(report.failures))
            return tuple(reports)
    raise Outage(
        f"topics {', '.join(names)}",
        found=f"log starts that moved during each of {PLANS} comparisons",
        expected="one comparison between two deletions by retention",
        remedy="Raise segment.ms or log.retention.check.interval.ms for the time being, then run it again.",
    )


def await_all(compared: Sequence[Future[T]], told: Callable[[], str], seconds: float = TOLD_SECONDS) -> list[T]:
    """Wait for the results of comparisons, and log meanwhile how far they are.

    :param seconds: time between two lines of the log.
    """
    began = time.monotonic()
    while wait(compared, timeout=seconds).not_done:
        log.info("after %.0f s: %s", time.monotonic() - began, told())
    return [each.result() for each in compared]


def _assert_whole(admin: ClusterAdmin, names: list[str], ends: PartitionOffsets) -> None:
    present = admin.end_offsets(names)
    for topic in names:
        found, captured = present[topic], ends[topic]
        if any(found.get(p, 0) < end for p, end in captured.items()):
            raise UnsafeState(
                f"topic {topic!r}",
                found=f"ends {found}",
                expected=f"at least the captured ends {captured}",
                remedy="It was deleted or made anew since these ends were read: nothing can be proven any more.",
            )
