"""Units of a copy: one source partition on its way to all partitions of the target topic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.plan.plan import Move, MoveKind


@dataclass(frozen=True)
class CopyUnit:
    """One partition of a move's source topic. A key lives in one partition, so no two units share a key.

    :param earlier: counts that the source had before and that may have placed keys as well; used for the old topic
        of a bridge that has grown since.
    """

    move: Move
    partition: int
    earlier: tuple[int, ...] = ()

    @property
    def source(self) -> TopicPartition:
        """Topic and partition that are read."""
        return self.move.source, self.partition

    @property
    def is_changelog(self) -> bool:
        """Whether its records are state; else they are in flight."""
        return self.move.kind is MoveKind.CHANGELOG

    def transactional_id(self, green: str) -> str:
        """Return the id under which every attempt writes this unit, so that a newer attempt fences older ones.

        Other units of its move have the same id: see ``buckets_of``.
        """
        number = self.partition % self.move.producers if self.move.producers else self.partition
        return f"kafka-rescale-{green}-{self.move.source}-{number}"

    def __str__(self) -> str:
        return f"{self.move.source}-{self.partition}"


def units_of(moves: Iterable[Move]) -> list[CopyUnit]:
    """Return the units of some moves, all partitions of a topic together."""
    return [CopyUnit(move, p) for move in moves for p in range(move.source_partitions)]


def buckets_of(units: Iterable[CopyUnit]) -> list[list[CopyUnit]]:
    """Return units in buckets: one producer writes all units of a bucket, in common transactions.

    No two processes of an attempt may have units of the same bucket: they would fence each other.
    """
    buckets: dict[str, list[CopyUnit]] = {}
    for unit in units:
        buckets.setdefault(unit.transactional_id(""), []).append(unit)
    return list(buckets.values())


def divided(units: Sequence[CopyUnit], count: int) -> list[list[CopyUnit]]:
    """Divide units evenly over at most ``count`` non-empty lists. Buckets and repartition topics stay whole.

    A repartition topic stays whole because it is emptied once per attempt, before any of its partitions moves.
    """
    count = max(1, count)
    lists: list[list[CopyUnit]] = [[] for _ in range(count)]
    for index, bucket in enumerate(buckets_of(u for u in units if not _is_whole(u))):
        lists[index % count].extend(bucket)
    for topic in dict.fromkeys(u.move.source for u in units if _is_whole(u)):
        min(lists, key=len).extend(u for u in units if u.move.source == topic)
    return [each for each in lists if each]


def _is_whole(unit: CopyUnit) -> bool:
    return unit.move.kind is MoveKind.REPARTITION
