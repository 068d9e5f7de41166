"""How far the copy of one partition is."""

from __future__ import annotations

from kafka_rescale.core.values import Value

NO_POSITION = -1
"""In the place of a position, or of a lag: the copy has not begun."""


class PartitionProgress(Value):
    """How far the copy of one source partition is. ``records`` and ``bytes`` count this attempt only."""

    topic: str
    partition: int
    position: int
    end: int
    records: int = 0
    bytes: int = 0

    @property
    def lag(self) -> int:
        """Offsets between position and end, or ``NO_POSITION``; a position that was read later may be beyond."""
        return NO_POSITION if self.position < 0 else self.left

    @property
    def left(self) -> int:
        """Offsets that are left to be copied, all of them where the copy has not begun."""
        return max(0, self.end - max(0, self.position))
