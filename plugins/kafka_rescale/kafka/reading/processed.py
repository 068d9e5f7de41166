"""Has an application processed all input records up to a point in time?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.snapshots.rows import CLOSERS
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import poll_until
from kafka_rescale.kafka.reading.range_reader import read_ranges

LOOK_BACK = 2 * CLOSERS
"""How many offsets before its stop are looked at. Markers of transactions have offsets, too."""
LONGEST_PAUSE = 2.0
TOLD_EVERY_SECONDS = 20.0


def await_processed(
    connection: KafkaConnection,
    group: str,
    topics: Sequence[str],
    until_ms: int,
    grace_ms: int,
    *,
    seconds: float,
    tell: Callable[[str], None],
    proven: PartitionOffsets | None = None,
) -> None:
    """Wait until no record older than ``until_ms`` is unprocessed in these topics.

    The topics are waited for one after the other, each up to the end that it has when its turn comes. So records
    that one sub-topology hands to the next are waited for as well. ``CLOSERS`` records beyond the grace end the
    look at their partition, as they end the day in a changelog.

    :param grace_ms: how far records of one partition may be out of order.
    :param group: the group that reads them: ``application.id`` of the generation, or the group of its bridge.
    :param topics: the most upstream first.
    :param seconds: how long to wait in all; 0 checks nothing.
    :param tell: gets a sentence about the wait now and then.
    :param proven: positions that are known otherwise, for partitions without a committed offset.
    :raises Outage: older records are still unprocessed.
    """
    if not seconds:
        return
    admin = ClusterAdmin(connection)
    look = partial(_older, connection, until_ms, grace_ms)
    for topic in topics:
        _await_topic(look, admin, group, topic, seconds, tell, (proven or {}).get(topic, {}))


def left_over(
    connection: KafkaConnection, stopped_at: PartitionOffsets, until_ms: int, grace_ms: int
) -> list[str]:
    """Return the places of older records that a stopped application left unprocessed, a few words for each.

    :param stopped_at: the offsets at which it stopped reading.
    :param grace_ms: how far records of one partition may be out of order.
    """
    admin = ClusterAdmin(connection)
    ends, begins = admin.end_offsets(stopped_at), admin.begin_offsets(stopped_at)
    found: list[str] = []
    for topic in sorted(ends):
        stopped, first = stopped_at[topic], begins[topic]
        # What it has processed last may show that the day was over long before.
        ranges = {p: (max(o - LOOK_BACK, first[p]), ends[topic][p]) for p, o in stopped.items()}
        older = _older(connection, until_ms, grace_ms, topic, ranges, stopped)
        found += [f"{topic}-{p} at {o}" for p, o in older.items()]
    return found


def _await_topic(
    look: Callable[[str, Mapping[int, tuple[int, int]]], dict[int, int]],
    admin: ClusterAdmin,
    group: str,
    topic: str,
    seconds: float,
    tell: Callable[[str], None],
    proven: Mapping[int, int],
) -> None:
    # A topic that a broker does not know yet would seem to have no record that is unprocessed.
    present = {topic} - admin.absent_of([topic])
    ends = admin.end_offsets(present).get(topic, {})
    begins = admin.begin_offsets(present).get(topic, {})
    # By partition, the older record that comes first, as far as it was looked for.
    waiting = dict.fromkeys(ends, -1)
    told_at = -TOLD_EVERY_SECONDS

    def first() -> str:
        partition, offset = next(iter(waiting.items()))
        return f"{topic}-{partition} at {offset}"

    def processed() -> bool:
        nonlocal told_at
        committed = {**proven, **admin.committed(group, {topic: len(ends)}).get(topic, {})}
        starts = {p: max(committed.get(p, 0), begins.get(p, 0)) for p in waiting}
        # Millions of records may lie before the older one. So the next look begins behind it.
        passed = [p for p, start in starts.items() if start > waiting[p]]
        older = look(topic, {p: (starts[p], ends[p]) for p in passed})
        for partition in passed:
            del waiting[partition]
        waiting.update(older)
        if waiting and time.monotonic() - told_at >= TOLD_EVERY_SECONDS:
            told_at = time.monotonic()
            tell(f"waiting for {group} to process older records, the first in {first()}: {seconds:.0f} s at most")
        return not waiting

    def outage() -> Outage:
        return Outage(
            f"group {group}",
            found=f"records of that day that it has not processed, the first in {first()}",
            expected="everything of the day to be processed before its snapshot is taken",
            remedy="See that the application, or its bridge, runs and its lag falls; the task is tried again, for "
            "`max_wait_seconds`.",
        )

    poll_until(processed, seconds=seconds, otherwise=outage, longest_pause=LONGEST_PAUSE)


def _older(
    connection: KafkaConnection,
    until_ms: int,
    grace_ms: int,
    topic: str,
    ranges: Mapping[int, tuple[int, int]],
    processed: Mapping[int, int] | None = None,
) -> dict[int, int]:
    """Return the partitions that have an older record, with the offset of the first one.

    A record of the day may lie behind younger ones. The look at a partition ends as the day ends in a changelog,
    because a partition may have millions of records.

    :param processed: by partition, the offset before which records are processed, though they are looked at.
    """
    older: dict[int, int] = {}
    for partition, (start, end) in ranges.items():
        closers, unprocessed = 0, (processed or {}).get(partition, start)
        for message in read_ranges(connection, topic, {partition: (start, end)}, may_be_deleted=True):
            at_ms, offset = message.timestamp()[1], message.offset() or 0
            if at_ms < until_ms and offset < unprocessed:
                closers = 0
                continue
            if at_ms < until_ms:
                older[partition] = offset
                break
            closers += at_ms >= until_ms + grace_ms
            if closers == CLOSERS:
                break
    return older
