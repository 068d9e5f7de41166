"""Is a copy close enough to its source? The lag gate's decision, by position and per partition.

Lag is end − position, never end − (last record + 1). A reader's position steps over transaction markers and over
the holes that compaction leaves, so these can't keep the gate closed for ever.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.progress import NO_POSITION, PartitionProgress
from kafka_rescale.core.plan.plan import Plan


@dataclass(frozen=True)
class PartitionLag:
    """How far one partition's copy is behind.

    :param lag: offsets between position and end; None if the copy has no position yet.
    """

    topic: str
    partition: int
    lag: int | None

    def within(self, threshold: int) -> bool:
        """Whether this partition lets the gate open; a partition without a position never does."""
        return self.lag is not None and self.lag <= threshold

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}: {'no position' if self.lag is None else self.lag}"


@dataclass(frozen=True)
class GateDecision:
    """The gate's answer for one reading.

    :param lags: one per expected partition; the partitions that are furthest behind come first.
    :param threshold: acceptable recovery lag in offsets per partition.
    """

    lags: tuple[PartitionLag, ...]
    threshold: int

    @property
    def holding(self) -> tuple[PartitionLag, ...]:
        """The partitions that keep the gate shut."""
        return tuple(each for each in self.lags if not each.within(self.threshold))

    @property
    def is_open(self) -> bool:
        """Whether every partition is within the threshold at the same time."""
        return not self.holding


def expected_sources(plan: Plan, index: int | None = None) -> frozenset[TopicPartition]:
    """Return every changelog partition that a stage copies.

    :param index: the stage, counting from 1 at the most downstream; all stages for ``None``.
    """
    return frozenset(
        (move.source, partition)
        for move in (plan.changelogs if index is None else plan.stage(index).changelogs)
        for partition in range(move.source_partitions)
    )


def decide(
    progress: Iterable[PartitionProgress], threshold: int, expected: Collection[TopicPartition] = ()
) -> GateDecision:
    """Return whether the gate opens.

    It fails closed: the gate stays shut if an expected partition was not reported, or has no position (negative).
    A position beyond the end (it was read a moment later) counts as no lag.

    :param threshold: offsets per partition, inclusive.
    :param expected: partitions that must be reported; reported partitions always count.
    """
    known = {(p.topic, p.partition): None if p.lag == NO_POSITION else p.lag for p in progress}
    lags = [PartitionLag(*source, known.get(source)) for source in {*known, *expected}]
    return GateDecision(tuple(sorted(lags, key=_furthest_behind_first)), threshold)


def _furthest_behind_first(each: PartitionLag) -> tuple[bool, int, str, int]:
    return (each.lag is not None, -(each.lag or 0), each.topic, each.partition)
