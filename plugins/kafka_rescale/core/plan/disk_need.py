"""How many bytes an expansion writes at most, and how many of these may come to lie on one log dir.

The size of a source's log on disk is the bound: a copy reads all of the log, and writes no more than it has read,
with the same compression. Records that compaction would remove count as well: brokers remove them only later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, lcm

from kafka_rescale.core.plan.plan import Move

UNEVEN = 1
"""How many replicas of a topic a broker may get beyond an even spread. With racks, three brokers were seen to get
4, 7 and 5 of 16 replicas."""


@dataclass(frozen=True)
class TopicNeed:
    """What is written to one topic.

    :param source_bytes: size of the source's log, each partition counted once.
    :param written: bytes to be written at most, each partition counted once.
    :param partitions: number of partitions that these bytes are written to, in equal shares.
    :param replicas: number of replicas of each of these partitions.
    """

    source: str
    target: str
    source_bytes: int
    written: int
    partitions: int
    replicas: int

    @property
    def everywhere(self) -> int:
        """Bytes on all brokers together."""
        return self.written * self.replicas

    def on_one(self, brokers: int, log_dirs: int) -> int:
        """Return the bytes on one log dir at most, if the replicas are spread about evenly.

        A broker gets ``UNEVEN`` more than its share, unless each broker has to hold every partition anyway.

        :param brokers: how many brokers take replicas.
        :param log_dirs: how many log dirs of this broker take replicas.
        """
        share = ceil(self.partitions * self.replicas / brokers) + (UNEVEN if self.replicas < brokers else 0)
        on_broker = min(self.partitions, share)
        return ceil(self.written * ceil(on_broker / log_dirs) / self.partitions)


def topic_need(move: Move, size: int, replicas: int, share: float = 1.0) -> TopicNeed:
    """Return what a move writes.

    In place, each record of a key that moves is written again in its new partition, and a tombstone where the key
    was. A tombstone is taken to be at most as large as the record.

    :param size: bytes of the source's log, each partition counted once.
    :param replicas: number of replicas of each partition.
    :param share: the part of the source's records that is carried over.
    """
    written = ceil(size * min(1.0, share) * (_moving(move) if move.is_in_place else 1.0))
    receiving = move.target_partitions
    if move.is_in_place and move.target_partitions % move.source_partitions == 0:
        receiving -= move.source_partitions
    tombstones = written if move.is_in_place else 0
    return TopicNeed(move.source, move.target, size, written + tombstones, max(1, receiving), replicas)


def carried_share(begins: Mapping[int, int], committed: Mapping[int, int], ends: Mapping[int, int]) -> float:
    """Return the part of a topic's offsets that the application has not processed: this much is carried over.

    :param begins: log start by partition; ``committed`` and ``ends`` are by partition too.
    """
    held = sum(end - begins.get(p, 0) for p, end in ends.items())
    left = sum(end - max(begins.get(p, 0), committed.get(p, 0)) for p, end in ends.items())
    return max(0, left) / held if held > 0 else 0.0


def _moving(move: Move) -> float:
    """Return the part of a topic's keys that get another partition in place; all if only a function knows it.

    A static partitioner moves no key: the copy would refuse a key that moves.
    """
    if not move.grows or move.partitioner.startswith("static:"):
        return 0.0
    if move.partitioner != "murmur2":
        return 1.0
    return 1.0 - move.source_partitions / lcm(move.source_partitions, move.target_partitions)
