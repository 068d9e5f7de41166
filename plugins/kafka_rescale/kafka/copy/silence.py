"""Partitions that are silent although records are to come: a worker must not wait for them for ever.

Only the time in which a worker listens counts. A partition's silence means nothing while the worker writes, or
while other partitions have so many records that its turn does not come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import ClusterOutage


class Silence:
    """How long a worker has listened in vain, per source partition.

    :param seconds: how long a partition may be silent.
    """

    def __init__(self, sources: Collection[TopicPartition], seconds: float) -> None:
        self._seconds, self._listened = seconds, 0.0
        self._heard = dict.fromkeys(sources, 0.0)

    def listened(self, seconds: float, heard: Iterable[TopicPartition]) -> None:
        """Note that the worker has listened, and which partitions have sent records or their end."""
        self._listened += seconds
        self.heard(heard)

    def heard(self, sources: Iterable[TopicPartition] | None = None) -> None:
        """Note partitions that were heard in another way, as by asking brokers for ends; None means all."""
        for source in self._heard if sources is None else sources:
            self._heard[source] = self._listened

    def check(self) -> None:
        """Look for partitions that have been silent for too long.

        :raises ClusterOutage: there are such partitions; the error names them.
        """
        silent = [s for s, heard in self._heard.items() if self._listened - heard > self._seconds]
        if silent:
            raise ClusterOutage(
                f"copy of {', '.join(f'{topic}-{partition}' for topic, partition in sorted(silent))}",
                found=f"neither records nor an end for {self._seconds:.0f} s",
                expected="every partition to be read up to its end",
                remedy="No leader, or an open transaction that hides its end. Look at the brokers; run again.",
            )
