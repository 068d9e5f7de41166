"""How far green has restored its stores ahead of the pause, and how fast it was."""

from __future__ import annotations

from typing import Self

from kafka_rescale.core.values import Value


class Warmth(Value):
    """What the last restoring behind the warm-up gate has left on the disks of green's instances.

    :param offsets: sum of the ends of green's changelogs up to which it has restored.
    :param per_second: how many offsets it restored in a second, at the pre-warming.
    :param seconds: how long the last restoring took, without its start and its stop.
    :param checked_ms: wall clock when it was last decided whether green should restore again.
    """

    offsets: int
    per_second: float
    seconds: float
    checked_ms: int

    def missing(self, offsets: int) -> float:
        """Return how many seconds green would restore within the pause.

        :param offsets: sum of the ends of green's changelogs now.
        """
        return max(0, offsets - self.offsets) / self.per_second

    def checked(self, now_ms: int) -> Self:
        """Return the record after a decision."""
        return self.model_copy(update={"checked_ms": now_ms})

    def restored(self, offsets: int, seconds: float) -> Self:
        """Return the record after green has restored what was copied since."""
        return self.model_copy(update={"offsets": offsets, "seconds": seconds})
