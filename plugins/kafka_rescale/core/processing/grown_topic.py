"""A source topic that has grown: where its keys were and are, and which records are read first (KIP-253).

After the growth, a producer that does not know the new partitions yet still writes to the old ones. So the end
offsets at the time of the growth do not separate earlier records from later ones. Timestamps do not separate them
either, because records may be late. The order of two requests does: ask for the end of a new partition first, then
for the ends of the old partitions. Everything that the producers of the new partition wrote to old partitions
before then lies below the ends **that are asked for second**.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.partitioning.linear_hashing import LinearHashing, ancestors, coarser


@dataclass(frozen=True)
class GrownTopic:
    """A topic that has more partitions than at the beginning, and whose keys are placed by linear hashing.

    :param topic: the full name.
    :param initial: the number of partitions at the very beginning.
    :param partitions: the number of partitions now.
    :param processors: the number of processors of the sub-topology that reads the topic.
    :param settled: by partition, an offset. The records from this offset on come from producers that knew all
        partitions. Empty if these offsets are not known yet.
    """

    topic: str
    initial: int
    partitions: int
    processors: int
    settled: Mapping[int, int] = field(default_factory=dict)

    def ancestors(self, partition: int) -> tuple[int, ...]:
        """Return the partitions where the keys of this partition may have been before, the latest one first."""
        return ancestors(partition, self.initial)

    def homes(self, keys: Sequence[bytes]) -> list[int]:
        """Return the partitions to which producers that know all partitions send these keys."""
        return LinearHashing(self.initial).partition_batch(keys, self.partitions)

    def until(self, partition: int, end: int) -> int:
        """Return the offset below which there may be records whose keys have moved to other partitions.

        :param end: the end of the range to read (exclusive).
        """
        return min(end, self.settled.get(partition, end))

    def fence(self, partition: int, records: Iterable[tuple[int, bytes | None]]) -> int:
        """Return the offset behind the last record whose key now belongs to another partition, else 0.

        :param records: offset and key of the records of one partition that have not been read yet.
        """
        keyed = [(offset, key) for offset, key in records if key is not None]
        homes = self.homes([key for _, key in keyed])
        return max((at + 1 for (at, _), home in zip(keyed, homes, strict=True) if home != partition), default=0)

    def check(self, records: Iterable[tuple[int, int, bytes | None]]) -> None:
        """Refuse records that are in a wrong partition.

        A record is right in the partition of its key. Below ``settled``, a record is also right in a partition
        where its key was before, if the processor of the key reads this partition.

        :param records: partition, offset and key.
        :raises UnsafeState: a record is in a wrong partition. The error names the record.
        """
        keyed = [(partition, offset, key) for partition, offset, key in records if key is not None]
        for (partition, offset, key), home in zip(keyed, self.homes([k for *_, k in keyed]), strict=True):
            if home != partition:
                self._check(partition, offset, key, home)

    def _check(self, partition: int, offset: int, key: bytes, home: int) -> None:
        record = f"topic {self.topic!r} partition {partition} offset {offset}: key 0x{key.hex()}"
        if partition not in self.ancestors(home):
            raise UnsafeState(
                record,
                found=f"in partition {partition} of {self.partitions}",
                expected=f"it in partition {home}, by linear hashing over the initial {self.initial}",
                remedy="Its producer uses another partitioner, and the key's state is elsewhere. Mend the "
                "producer; to go on without such records, put the offset behind them by `set-offset`. If "
                "processors were added before, and the control topic has lost the record "
                f"`<application>/processors` since, the producer is right, and the initial count is not "
                f"{self.initial}: bring that record back.",
            )
        is_late = bool(self.settled) and offset >= self.settled.get(partition, 0)
        if is_late or self._processor(home) != self._processor(partition):
            raise UnsafeState(
                record,
                found="a record of a producer that did not know the growth of the topic in time",
                expected=f"it in partition {home}, where later ones of its key may have been read",
                remedy="Restart that producer, and raise `partition.growth.settle.ms` above its "
                "metadata.max.age.ms and delivery.timeout.ms together before the next growth. To go on without "
                "the record, put the offset behind it by `set-offset`.",
            )

    def _processor(self, partition: int) -> int:
        return coarser(partition, self.processors, self.initial)
