"""Partitions whose copy stands still although they have records to read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import ClusterOutage


class Watch:
    """How long the copy of a partition has committed nothing although its end lies ahead.

    Only time in which the worker took everything that its client had counts. A long step counts half the limit at
    most, so that a process that was suspended looks again before it draws a conclusion.

    :param seconds: how long the copy of a partition may stand still.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._clock = 0.0
        self._seen: dict[TopicPartition, tuple[int, float]] = {}
        self._told: set[TopicPartition] = set()

    def passed(self, seconds: float) -> None:
        """Note that the worker has worked, and that nothing was left in its client."""
        self._clock += min(seconds, self.seconds / 2)

    def still(
        self, committed: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> list[TopicPartition]:
        """Return the partitions that stand still.

        :param committed: the next offsets to read, as they were committed last.
        :param ends: exclusive; of the partitions that have records to read.
        """
        for source, at in committed.items():
            seen = self._seen.get(source)
            if seen is None or seen[0] != at or source not in ends:
                self._seen[source] = at, self._clock
        return [s for s in ends if s in self._seen and self._clock - self._seen[s][1] > self.seconds]

    def stall(
        self,
        sources: Collection[TopicPartition],
        committed: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
    ) -> ClusterOutage:
        """Return the error about partitions that stand still; see ``still``."""
        at = [f"{t}-{p} at {committed[t, p]} of {ends[t, p]}" for t, p in sources]
        return ClusterOutage(
            f"copy of {', '.join(at)}",
            found=f"nothing committed for {self.seconds:.0f} s, although another client finds records there",
            expected="a copy that goes on",
            remedy="Run again. If it comes again, look at the brokers that lead these partitions.",
        )

    def heard(self, sources: Iterable[TopicPartition]) -> None:
        """Note that some partitions have no records to read: their count begins anew."""
        for source in sources:
            self._seen.pop(source, None)

    def moved(self, sources: Iterable[TopicPartition]) -> None:
        """Note that the positions of some partitions were committed."""
        self._told.difference_update(sources)

    def tell(self, sources: Collection[TopicPartition]) -> bool:
        """Note that clients are replaced for some partitions; False if any has not moved since the last time."""
        again = not self._told.isdisjoint(sources)
        self._told.update(sources)
        self.heard(sources)
        return not again
