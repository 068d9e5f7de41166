"""The progress of the copy of one partition."""

from __future__ import annotations

from pydantic import Field

from kafka_rescale.core.values import Value

NO_POSITION = -1
"""Stands for a position or a lag if the copy has not begun."""


class Extremes(Value):
    """What the limits of a topic are compared with, of all records that a rehearsal would write.

    :param oldest_ms: the oldest timestamp.
    :param newest_ms: the newest timestamp.
    :param bytes: size of the largest record in a batch of its own, without compression.
    """

    oldest_ms: int
    newest_ms: int
    bytes: int

    def __or__(self, other: Extremes) -> Extremes:
        """Return those of both."""
        return Extremes(
            oldest_ms=min(self.oldest_ms, other.oldest_ms),
            newest_ms=max(self.newest_ms, other.newest_ms),
            bytes=max(self.bytes, other.bytes),
        )


class PartitionProgress(Value):
    """The progress of the copy of one source partition; ``records`` and ``bytes`` are those of this attempt.

    :param begin: where the copy begins: mostly the log start, because retention may have deleted what was before.
        None if that is not known, as in a record of an earlier version.
    :param extremes: of a rehearsal that would write records.
    """

    topic: str
    partition: int
    position: int
    end: int
    records: int = 0
    bytes: int = 0
    begin: int | None = Field(default=None, exclude_if=lambda offset: offset is None)
    extremes: Extremes | None = Field(default=None, exclude_if=lambda extremes: extremes is None)

    @property
    def lag(self) -> int:
        """Offsets between position and end, or ``NO_POSITION``. A position read later than the end may pass it."""
        return NO_POSITION if self.position < 0 else max(0, self.end - self.position)

    @property
    def left(self) -> int:
        """Offsets that are left to be copied: all from the beginning on if the copy has not begun.

        It is what is left at most if it is not known where the copy begins (``is_left_known``).
        """
        return max(0, self.end - max(self.begin or 0, self.position))

    @property
    def is_left_known(self) -> bool:
        """Whether the copy has a position, or it is known where it begins."""
        return self.position >= 0 or self.begin is not None

    @property
    def whole(self) -> int | None:
        """Offsets from where the copy begins to the end; None if it is not known where it begins."""
        return None if self.begin is None else max(0, self.end - self.begin)
