"""Reading a grown topic so that the records of each key stay in order: its ends, and partitions that must wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.processing.grown_topic import GrownTopic
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import poll_until
from kafka_rescale.kafka.reading.range_reader import read_ranges

OPEN_SECONDS = 75.0
"""The brokers abort a transaction after 60 s unless its producer asks for more."""

Holds = Mapping[TopicPartition, Mapping[TopicPartition, int]]
"""By partition: the partitions that have to be read first, each up to an offset."""


def captured_ends(admin: ClusterAdmin, topics: set[str], grown: Mapping[str, GrownTopic]) -> PartitionOffsets:
    """Return the ends of topics, for a ``read_committed`` reader.

    If a topic has grown, this first asks for the ends of the newest partitions, and then for the ends of the
    partitions that they were split from. Suppose that a producer wrote a record to an old partition, and later a
    record to a new partition. If the later record is below the ends, the earlier record is below them too.

    :raises Outage: a transaction on an old partition stays open.
    """
    ends = admin.end_offsets(topics)
    for topic in sorted(topics & grown.keys()):
        depths = {p: len(grown[topic].ancestors(p)) for p in ends[topic]}
        for depth in range(max(depths.values()) - 1, -1, -1):
            later = _complete_ends(admin, topic)
            ends[topic] |= {p: later[p] for p, its in depths.items() if its == depth}
    return ends


def holds(
    connection: KafkaConnection,
    grown: Mapping[str, GrownTopic],
    positions: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    goes_on: Callable[[], None] = lambda: None,
) -> Holds:
    """Return which partitions must wait, and for which records of other partitions.

    A partition must wait if a partition that it was split from may have earlier records of its keys.

    :param positions: where reading begins, in each partition of one task.
    :param ends: where reading ends, in the same partitions.
    :param goes_on: called again and again while this reads records.
    :raises Outage: the brokers don't answer.
    """
    waiting = {source for source, end in ends.items() if source[0] in grown and positions[source] < end}
    parents = {s: {(s[0], p) for p in grown[s[0]].ancestors(s[1])} & ends.keys() for s in waiting}
    fences = {
        parent: _fence(connection, grown[parent[0]], parent[1], (positions[parent], ends[parent]), goes_on)
        for parent in set().union(*parents.values())
    }
    found = {s: {p: fences[p] for p in its if fences[p] > positions[p]} for s, its in parents.items()}
    return {source: its for source, its in found.items() if its}


def _fence(
    connection: KafkaConnection,
    topic: GrownTopic,
    partition: int,
    left: tuple[int, int],
    goes_on: Callable[[], None],
) -> int:
    ranges = {partition: (left[0], topic.until(partition, left[1]))}
    return topic.fence(partition, _keys(connection, topic.topic, ranges, goes_on))


def _keys(
    connection: KafkaConnection,
    topic: str,
    ranges: Mapping[int, tuple[int, int]],
    goes_on: Callable[[], None],
) -> Iterator[tuple[int, bytes | None]]:
    for message in read_ranges(connection, topic, ranges, may_be_deleted=True):
        goes_on()
        key = message.key()
        yield message.offset() or 0, key.encode() if isinstance(key, str) else key


def _complete_ends(admin: ClusterAdmin, topic: str) -> dict[int, int]:
    """Wait for ends below which no transaction is open, and return them. All present records are below them."""
    written = admin.end_offsets([topic], read_committed=False)[topic]
    found: dict[int, int] = {}

    def complete() -> bool:
        found.update(admin.end_offsets([topic])[topic])
        return all(found[p] >= end for p, end in written.items())

    def outage() -> Outage:
        late = sorted(p for p, end in written.items() if found[p] < end)
        return Outage(
            f"topic {topic!r} partitions {', '.join(map(str, late))}",
            found=f"a transaction that has been open for {OPEN_SECONDS:.0f} s",
            expected="no open transaction: keys of this topic have moved, and have to be read in order",
            remedy="Find its producer (`kafka-transactions.sh find-hanging`) and end it; then run again.",
        )

    poll_until(complete, seconds=OPEN_SECONDS, otherwise=outage, longest_pause=0.1)
    return found
