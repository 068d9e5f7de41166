"""Has an application processed all input records up to a point in time?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import poll_until
from kafka_rescale.kafka.reading.range_reader import read_ranges

LONGEST_PAUSE = 2.0
TOLD_EVERY_SECONDS = 20.0


def await_processed(
    connection: KafkaConnection,
    group: str,
    topics: Sequence[str],
    until_ms: int,
    *,
    seconds: float,
    tell: Callable[[str], None],
    proven: PartitionOffsets | None = None,
) -> None:
    """Wait until no record older than ``until_ms`` is unprocessed in these topics.

    The topics are waited for one after the other, each up to the end that it has when its turn comes. So records
    that one sub-topology hands to the next are waited for as well. A younger record ends the wait for its
    partition.

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
    for topic in topics:
        _await_topic(connection, admin, group, topic, until_ms, seconds, tell, (proven or {}).get(topic, {}))


def left_over(connection: KafkaConnection, stopped_at: PartitionOffsets, until_ms: int) -> list[str]:
    """Return the places of older records that a stopped application left unprocessed, a few words for each.

    :param stopped_at: the offsets at which it stopped reading.
    """
    admin = ClusterAdmin(connection)
    ends, begins = admin.end_offsets(stopped_at), admin.begin_offsets(stopped_at)
    found: list[str] = []
    for topic in sorted(ends):
        ranges = {p: (max(o, begins[topic][p]), ends[topic][p]) for p, o in stopped_at[topic].items()}
        found += [f"{topic}-{p} at {o}" for p, o in _older(connection, topic, ranges, until_ms).items()]
    return found


def _await_topic(
    connection: KafkaConnection,
    admin: ClusterAdmin,
    group: str,
    topic: str,
    until_ms: int,
    seconds: float,
    tell: Callable[[str], None],
    proven: Mapping[int, int],
) -> None:
    # A topic that a broker does not know yet would seem to have no record that is unprocessed.
    present = {topic} - admin.absent_of([topic])
    ends = admin.end_offsets(present).get(topic, {})
    begins = admin.begin_offsets(present).get(topic, {})
    waiting: dict[int, int] = {}
    told_at = -TOLD_EVERY_SECONDS

    def first() -> str:
        partition, offset = next(iter(waiting.items()))
        return f"{topic}-{partition} at {offset}"

    def processed() -> bool:
        nonlocal told_at
        committed = {**proven, **admin.committed(group, {topic: len(ends)}).get(topic, {})}
        ranges = {p: (max(committed.get(p, 0), begins.get(p, 0)), end) for p, end in ends.items()}
        waiting.clear()
        waiting.update(_older(connection, topic, {p: r for p, r in ranges.items() if r[0] < r[1]}, until_ms))
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
    connection: KafkaConnection, topic: str, ranges: Mapping[int, tuple[int, int]], until_ms: int
) -> dict[int, int]:
    """Return the partitions whose next record is older, with its offset."""
    older: dict[int, int] = {}
    for partition, (start, end) in ranges.items():
        for message in read_ranges(connection, topic, {partition: (start, end)}, may_be_deleted=True):
            if message.timestamp()[1] < until_ms:
                older[partition] = message.offset() or 0
            break
    return older
