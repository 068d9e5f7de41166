"""The progress of the copy of one partition."""

from __future__ import annotations

from kafka_rescale.core.values import Value

NO_POSITION = -1
"""Stands for a position or a lag if the copy has not begun."""


class PartitionProgress(Value):
    """The progress of the copy of one source partition; ``records`` and ``bytes`` are those of this attempt."""

    topic: str
    partition: int
    position: int
    end: int
    records: int = 0
    bytes: int = 0

    @property
    def lag(self) -> int:
        """Offsets between position and end, or ``NO_POSITION``. A position read later than the end may pass it."""
        return NO_POSITION if self.position < 0 else self.left

    @property
    def left(self) -> int:
        """Offsets that are left to be copied: all of them if the copy has not begun."""
        return max(0, self.end - max(0, self.position))
