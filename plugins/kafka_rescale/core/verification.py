"""What the proof compares, and its report.

Blue is read up to the ends captured when it was proven gone, green up to its ends just before it was started, so
that both may be verified while green is already writing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import Field

from kafka_rescale.core.changelog_formats import Content, format_of
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.journal import Journal, PartitionOffsets
from kafka_rescale.core.misrouted import InputReport
from kafka_rescale.core.oracles import KeyFinding, Oracle, printable
from kafka_rescale.core.plan import InputPlan, LeftTable, Move, Value

CLOCK_SKEW_MS = 60_000
MAX_FINDINGS = 20


class LogRange(Value):
    """The part of a changelog topic that is compared.

    :param partitions: partition count of the topic in its generation.
    :param ranges: partition → ``(begin, end)``, end exclusive. A begin above 0 means that the broker has
        deleted records there.
    """

    topic: str
    partitions: int
    ranges: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, topic: str, begins: Mapping[int, int], ends: Mapping[int, int]) -> LogRange:
        """Return the range of a whole topic; a log start that has moved past the end leaves nothing."""
        ranges = {p: (min(begins.get(p, 0), end), end) for p, end in sorted(ends.items())}
        return cls(topic=topic, partitions=len(ends), ranges=ranges)

    @property
    def begins(self) -> list[int]:
        """The first offset to read, by partition."""
        return [self.ranges[p][0] for p in range(self.partitions)]

    @property
    def ends(self) -> list[int]:
        """The offset to stop before, by partition."""
        return [self.ranges[p][1] for p in range(self.partitions)]


class StorePair(Value):
    """One store on both sides.

    :param expires_before_ms: a record with an older timestamp may have been deleted by retention on either side at
        any time, so that its absence proves nothing; ``None`` for logs that are only compacted.
    :param versions_since_ms: of a versioned store, compaction had to keep records from this timestamp on, so that
        all of them are on both sides; ``None`` for other stores, where only the last record of a key counts.
    :param left: of foreign-key subscriptions, the table whose partitions their values name.
    :param copied: green is a copy of blue. Two applications with equal input (a control run) agree on their last
        records but may differ in what was logged on the way.
    """

    store: str
    store_type: str
    partitioning_key: str = ""
    partitioner: str = "murmur2"
    key_topic: str = ""
    blue: LogRange
    green: LogRange
    expires_before_ms: int | None = None
    versions_since_ms: int | None = None
    left: LeftTable | None = None
    copied: bool = True

    def left_of(self, side: str) -> tuple[str, str, int] | None:
        """Return partitioner, topic and partitions of the left table on one side, ``blue`` or ``green``."""
        if self.left is None:
            return None
        count = self.left.source_partitions if side == "blue" else self.left.target_partitions
        return self.left.partitioner, self.left.key_topic, count


class LogCount(Value):
    """Records read; ``live`` and ``tombstoned`` count keys by their last record, expired ones left out."""

    records: int = 0
    live: int = 0
    tombstoned: int = 0


class PartitionContent(Value):
    """Live entries that belong to one partition of green; the hashes don't depend on the order of entries."""

    partition: int
    blue_live: int
    green_live: int
    blue_hash: str
    green_hash: str


class StoreReport(Value):
    """What was found out about one store.

    :param expired: entries on one side only that retention may have deleted on the other.
    :param surplus: records of green older than anything that blue still has of the key: blue was compacted since.
    :param failures: violations per oracle; ``findings`` lists the first of each.
    """

    store: str
    store_type: str
    blue_topic: str
    green_topic: str
    blue: LogCount
    green: LogCount
    expired: int
    surplus: int
    partitions: tuple[PartitionContent, ...]
    failures: dict[Oracle, int] = Field(default_factory=dict)
    findings: tuple[KeyFinding, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every oracle holds for this store."""
        return not self.failures


class Report(Value):
    """The proof of one expansion, as the control topic and the page keep it.

    :param plan: fingerprint of the plan: a report of another expansion proves nothing about this one.
    :param as_of_ms: when verify began, ms since the epoch.
    :param start_offsets: findings about the offsets that green started from.
    :param inputs: what was looked at of the inputs that were grown by key.
    """

    application: str
    blue: str
    green: str
    generation: int
    plan: str
    passed: bool
    as_of_ms: int
    seconds: float
    start_offsets: tuple[KeyFinding, ...]
    stores: tuple[StoreReport, ...]
    inputs: tuple[InputReport, ...] = ()

    @property
    def findings(self) -> tuple[KeyFinding, ...]:
        """All listed findings; at most ``MAX_FINDINGS`` per store and oracle."""
        return (*self.start_offsets, *self.misrouted, *(f for s in self.stores for f in s.findings))

    @property
    def misrouted(self) -> tuple[KeyFinding, ...]:
        """The first misrouted records of every input."""
        return tuple(
            KeyFinding(
                oracle=Oracle.MISROUTED,
                subject=f"{i.topic}-{m.partition}",
                detail=f"offset {m.offset} belongs to partition {m.home}",
                key=m.key,
                text=printable(bytes.fromhex(m.key)),
            )
            for i in self.inputs
            for m in i.first
        )


def is_about(report: Mapping[str, object], journal: Journal, since_ms: int) -> bool:
    """Whether a report, as the control topic keeps it, is about this expansion and began late enough.

    :param since_ms: a report that began before proves nothing, ms since the epoch.
    """
    as_of_ms = report.get("as_of_ms")
    return report.get("plan") == journal.plan.fingerprint and isinstance(as_of_ms, int) and as_of_ms >= since_ms


def retention_ms(topic: TopicDescription) -> int | None:
    """Return how long a topic keeps records by their timestamp, ``None`` if it doesn't delete by age."""
    kept = int(topic.configs.get("retention.ms", "-1"))
    return kept if "delete" in topic.cleanup_policy and kept >= 0 else None


def compaction_lag_ms(topic: TopicDescription) -> int:
    """Return for how long compaction keeps every record of a topic, by the records' own timestamps."""
    return int(topic.configs.get("min.compaction.lag.ms", "0"))


def expansion_pair(
    move: Move,
    *,
    begins: PartitionOffsets,
    ends: PartitionOffsets,
    topics: Mapping[str, TopicDescription],
    now_ms: int,
) -> StorePair:
    """Return what is compared for one changelog of an expansion.

    :param begins: log starts, of blue's and green's topics, taken before ``now_ms``.
    :param ends: the captured ends of both, exclusive.
    :param now_ms: wall clock; brokers' clocks may be ahead of it by ``CLOCK_SKEW_MS``.
    """
    kept = [r for r in (retention_ms(topics[t]) for t in (move.source, move.target)) if r is not None]
    lag_ms = min(compaction_lag_ms(topics[t]) for t in (move.source, move.target))
    is_versioned = format_of(move.store_type, move.partitioning_key).has(Content.VERSIONS)
    return StorePair(
        store=move.store,
        store_type=move.store_type,
        partitioning_key=move.partitioning_key,
        partitioner=move.partitioner,
        key_topic=move.key_topic,
        left=move.left,
        versions_since_ms=now_ms + CLOCK_SKEW_MS - lag_ms if is_versioned else None,
        blue=LogRange.of(move.source, begins[move.source], ends[move.source]),
        green=LogRange.of(move.target, begins[move.target], ends[move.target]),
        expires_before_ms=now_ms + CLOCK_SKEW_MS - min(kept) if kept else None,
    )


def check_start_offsets(
    inputs: tuple[InputPlan, ...],
    *,
    stopped: PartitionOffsets,
    started: PartitionOffsets,
    committed: PartitionOffsets,
) -> tuple[KeyFinding, ...]:
    """Return the partitions of external inputs where green didn't go on from where blue stopped.

    :param stopped: blue's committed offsets when it was gone; a partition without one was never read: 0.
    :param started: the offsets that green was given, as the journal recorded them.
    :param committed: green's committed offsets now, which may only have moved on.
    """
    return tuple(
        KeyFinding(oracle=Oracle.START_OFFSETS, subject=f"{i.green_topic}-{p}", detail=problem)
        for i in inputs
        for p in range(i.target)
        for problem in _start_problems(
            # The bridge carries on from where blue stopped, into a topic that green reads from its beginning.
            expected=0 if i.successor else stopped.get(i.topic, {}).get(p, 0),
            started=started.get(i.green_topic, {}).get(p),
            committed=committed.get(i.green_topic, {}).get(p),
        )
    )


def _start_problems(*, expected: int, started: int | None, committed: int | None) -> Iterator[str]:
    if started is None:
        yield f"green was given no offset; it had to start at {expected}"
    elif started != expected:
        skipped = started - expected
        consequence = f"{skipped} offsets skipped" if skipped > 0 else f"{-skipped} offsets read twice"
        yield f"green started at {started} instead of {expected}: {consequence}"
    if committed is None:
        yield f"green has no committed offset; it started at {expected}"
    elif committed < expected:
        yield f"green's committed offset is {committed}, below its start at {expected}"
