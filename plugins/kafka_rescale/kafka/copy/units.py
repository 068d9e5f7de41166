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
        """Return the id under which every attempt writes this unit, so that a newer one fences the older."""
        return f"kafka-rescale-{green}-{self.move.source}-{self.partition}"

    def __str__(self) -> str:
        return f"{self.move.source}-{self.partition}"


def units_of(moves: Iterable[Move]) -> list[CopyUnit]:
    """Return the units of some moves, all partitions of a topic together."""
    return [CopyUnit(move, p) for move in moves for p in range(move.source_partitions)]


def divided(units: Sequence[CopyUnit], buckets: int) -> list[list[CopyUnit]]:
    """Divide units evenly, but repartition topics whole, over at most ``buckets`` non-empty lists.

    A repartition topic stays whole because it is emptied once per attempt, before any of its partitions moves.
    """
    count = max(1, buckets)
    lists: list[list[CopyUnit]] = [[] for _ in range(count)]
    for index, unit in enumerate(u for u in units if not _is_whole(u)):
        lists[index % count].append(unit)
    for topic in dict.fromkeys(u.move.source for u in units if _is_whole(u)):
        min(lists, key=len).extend(u for u in units if u.move.source == topic)
    return [each for each in lists if each]


def _is_whole(unit: CopyUnit) -> bool:
    return unit.move.kind is MoveKind.REPARTITION
