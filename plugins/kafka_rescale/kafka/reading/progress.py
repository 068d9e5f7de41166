"""The progress of an expansion's copies at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_rescale.core.control.progress import NO_POSITION, PartitionProgress
from kafka_rescale.core.values import size


@dataclass(frozen=True)
class Snapshot:
    """One reading.

    :param as_of_ms: wall clock as of which the whole sources have been copied; 0 if that is not known.
    :param seconds: working time since the first reading, without that in which a copy was paused, or rested.
    :param progressed_ms: wall clock of the last sign of progress; 0 if that is not known, or there was none.
    :param seconds_left: of a proof, how long the comparison of the rest takes; None if that is not known.
    """

    partitions: tuple[PartitionProgress, ...]
    as_of_ms: int
    seconds: float
    progressed_ms: int = 0
    seconds_left: float | None = None

    @classmethod
    def of_all(cls, snapshots: Sequence[Snapshot]) -> Snapshot:
        """Return the readings of several copies as one reading."""
        partitions = tuple(p for snapshot in snapshots for p in snapshot.partitions)
        return cls(partitions, min((s.as_of_ms for s in snapshots), default=0), sum(s.seconds for s in snapshots))

    @property
    def records(self) -> int:
        """Number of records copied since the first reading."""
        return sum(p.records for p in self.partitions)

    @property
    def bytes(self) -> int:
        """Bytes of keys and values copied since the first reading."""
        return sum(p.bytes for p in self.partitions)

    @property
    def lag(self) -> int:
        """Offsets that are left, over all partitions."""
        return sum(p.left for p in self.partitions)

    def within(self, acceptable: int) -> bool:
        """Whether every partition has a position that is at most so many offsets behind."""
        return all(p.lag != NO_POSITION and p.lag <= acceptable for p in self.partitions)

    def __str__(self) -> str:
        rate = f"{size(self.bytes / self.seconds)}/s, " if self.seconds and self.bytes else ""
        pace = self.records / self.seconds if self.seconds else 0.0
        left = f", about {self.lag / pace:,.0f} s left" if pace and self.lag else ""
        return f"{self.records:,} records, {size(self.bytes)}, {rate}{self._lag}{left}"

    @property
    def _lag(self) -> str:
        waiting = sum(p.position < 0 for p in self.partitions)
        if waiting and waiting == len(self.partitions):
            return f"none of {waiting} partitions begun"
        return (
            f"lag {self.lag:,}{f', {waiting} of {len(self.partitions)} partitions not begun' if waiting else ''}"
        )
