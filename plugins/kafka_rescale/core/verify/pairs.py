"""The logs that are compared.

After a promotion, blue is read up to the ends that were captured when it was proven gone. Green is read up to its
ends just before it was started. So both can be verified while green is already writing. Before the promotion, blue
still writes: ``spark.verify.live`` says what is read then.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_rescale.core.cluster import LogRange, TopicDescription
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.formats.changelog_formats import Content, format_of
from kafka_rescale.core.formats.record_limits import compaction_lag_ms, retention_ms
from kafka_rescale.core.formats.subscription_wrapper import LeftTable
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.core.values import Value

CLOCK_SKEW_MS = 60_000


class ComparedLog(Value):
    """The part of a changelog topic that is compared.

    :param partitions: partition count of the topic in its generation.
    :param ranges: by partition. A begin above 0 means that the broker has deleted records there.
    """

    topic: str
    partitions: int
    ranges: dict[int, LogRange]

    @classmethod
    def of(cls, topic: str, begins: Mapping[int, int], ends: Mapping[int, int]) -> ComparedLog:
        """Return the range of a whole topic; it is empty if the log start has moved past the end."""
        ranges = {p: LogRange(min(begins.get(p, 0), end), end) for p, end in sorted(ends.items())}
        return cls(topic=topic, partitions=len(ends), ranges=ranges)

    @property
    def begins(self) -> list[int]:
        """The first offset to read, by partition."""
        return [self.ranges[p].begin for p in range(self.partitions)]

    @property
    def ends(self) -> list[int]:
        """The offset to stop before, by partition."""
        return [self.ranges[p].end for p in range(self.partitions)]


class StorePair(Value):
    """One store on both sides.

    :param expires_before_ms: retention may have deleted a record with an older timestamp on either side at any
        time, so its absence proves nothing; ``None`` for logs that are only compacted.
    :param versions_since_ms: for a versioned store: compaction had to keep records from this timestamp on, so all
        of them must be on both sides; ``None`` for other stores, in which only the last record of a key counts.
    :param planned_ms: wall clock as of which ``versions_since_ms`` is right, ms since the epoch; ``None`` if it
        stays right.
    :param left: for foreign-key subscriptions, the table whose partitions their values name.
    :param left_behind: whether blue was grown in place before: keys that moved then have left records behind.
    :param fence: by partition of blue, the position of the copy up to which blue is judged while it still writes.
        A key with a record at or behind it is excused. ``None`` if blue was stopped.
    :param copied: whether green is a copy of blue. Two applications with equal input (a control run) agree on
        their last records, but may differ in the records that they logged on the way.
    """

    store: str
    store_type: str
    partitioning_key: str = ""
    partitioner: str = "murmur2"
    key_topic: str = ""
    blue: ComparedLog
    green: ComparedLog
    expires_before_ms: int | None = None
    versions_since_ms: int | None = None
    planned_ms: int | None = None
    left: LeftTable | None = None
    left_behind: bool = False
    fence: dict[int, int] | None = None
    copied: bool = True

    @property
    def is_in_place(self) -> bool:
        """Whether both sides are one topic: green is all of it, blue the part before the growth."""
        return self.blue.topic == self.green.topic

    @property
    def appended(self) -> ComparedLog:
        """In place, the part of the log that is green's but not blue's."""
        before = {p: end for p, (_, end) in self.blue.ranges.items()}
        ranges = {p: LogRange(max(begin, before.get(p, 0)), end) for p, (begin, end) in self.green.ranges.items()}
        return self.green.model_copy(update={"ranges": ranges})

    @property
    def logs(self) -> tuple[ComparedLog, ...]:
        """What is read: blue's log and green's, or in place the one log that both are in."""
        if not self.is_in_place:
            return self.blue, self.green
        begins = {p: begin for p, (begin, end) in self.blue.ranges.items() if begin < end}
        ranges = {p: LogRange(begins.get(p, begin), end) for p, (begin, end) in self.appended.ranges.items()}
        return (self.green.model_copy(update={"ranges": ranges}),)

    def at(self, now_ms: int) -> StorePair:
        """Return the pair with ``versions_since_ms`` of another time: compaction goes on while logs are read.

        :param now_ms: by the clock of ``planned_ms``.
        """
        if self.versions_since_ms is None or self.planned_ms is None:
            return self
        since_ms = self.versions_since_ms + now_ms - self.planned_ms
        return self.model_copy(update={"versions_since_ms": since_ms, "planned_ms": now_ms})

    @property
    def modulus(self) -> int:
        """See ``residue_modulus``."""
        counts = self.blue.partitions, self.green.partitions
        return residue_modulus(self.partitioner, self.key_topic, *counts)


def expansion_pair(
    move: Move,
    *,
    begins: PartitionOffsets,
    blue_ends: PartitionOffsets,
    green_ends: PartitionOffsets,
    topics: Mapping[str, TopicDescription],
    now_ms: int,
    fence: Mapping[int, int] | None = None,
) -> StorePair:
    """Return the two logs that are compared for one changelog of an expansion.

    :param begins: log starts of blue's and green's topics, read before ``now_ms``.
    :param blue_ends: exclusive.
    :param green_ends: exclusive.
    :param now_ms: wall clock; brokers' clocks may be ahead of it by ``CLOCK_SKEW_MS``.
    :param fence: see ``StorePair``.
    """
    versions_since_ms, expires_before_ms = kept_since(move, topics, now_ms)
    return StorePair(
        store=move.store,
        store_type=move.store_type,
        partitioning_key=move.partitioning_key,
        partitioner=move.partitioner,
        key_topic=move.key_topic,
        left=move.left,
        versions_since_ms=versions_since_ms,
        planned_ms=now_ms,
        blue=ComparedLog.of(move.source, begins[move.source], blue_ends[move.source]),
        green=ComparedLog.of(move.target, begins[move.target], green_ends[move.target]),
        left_behind=bool(move.grown_from),
        fence=None if fence is None else dict(fence),
        expires_before_ms=expires_before_ms,
    )


def kept_since(move: Move, topics: Mapping[str, TopicDescription], now_ms: int) -> tuple[int | None, int | None]:
    """Return ``versions_since_ms`` and ``expires_before_ms`` of a store; see ``StorePair``.

    :param topics: descriptions of blue's and green's topic.
    :param now_ms: wall clock; brokers' clocks may be ahead of it by ``CLOCK_SKEW_MS``.
    """
    both, latest_ms = (topics[move.source], topics[move.target]), now_ms + CLOCK_SKEW_MS
    kept = [r for r in map(retention_ms, both) if r is not None]
    is_versioned = format_of(move.store_type, move.partitioning_key).has(Content.VERSIONS)
    versions_since_ms = latest_ms - min(map(compaction_lag_ms, both)) if is_versioned else None
    return versions_since_ms, latest_ms - min(kept) if kept else None


def residue_modulus(partitioner: str, key_topic: str, source_partitions: int, target_partitions: int) -> int:
    """Return the number modulo which green's partition of a key is blue's partition; 0 if there is no such number.

    If the partition is a hash modulo the count, the number is blue's count, provided that green's count is a
    multiple of it. A static partitioner leaves every key where it is. Then the number is green's count: every
    partition of green is smaller, so the remainder is the partition itself.

    :param key_topic: the topic name that is passed to a user's partitioner.
    """
    rule = partitioner_named(partitioner, key_topic)
    if rule.is_static:
        return target_partitions
    is_multiple = target_partitions % source_partitions == 0
    return source_partitions if rule.is_modulo and is_multiple else 0
