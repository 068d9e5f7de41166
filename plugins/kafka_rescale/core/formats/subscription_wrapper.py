"""The value of a foreign-key subscription. It names the left table's partition to which the answer goes.

``SubscriptionWrapperSerde`` writes these parts: byte 0 is the version, with the highest bit set if there is no
hash; byte 1 is the instruction; then 16 bytes of hash, if there is one; then the primary key; in version 1, the
primary partition in 4 bytes. The response sink sends to exactly this partition (KAFKA-13769), so a copy with
another count must rewrite it. Version 0 (before 3.4, or ``upgrade.from`` at most 3.3) has no partition, and its
answers are partitioned by key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.values import Value

NO_HASH = 0x80
VERSIONS = (0, 1)
INSTRUCTIONS = range(4)
HASH_BYTES = 16
PARTITION_BYTES = 4


class Subscription(NamedTuple):
    """The parts of a wrapper that concern partitions.

    :param primary_key: the left row's key, serialised.
    :param primary_partition: ``None`` in version 0.
    """

    primary_key: bytes
    primary_partition: int | None


def parse(value: bytes) -> Subscription | None:
    """Return the contents of a wrapper. ``None`` if the bytes are no wrapper."""
    if len(value) < 2 or value[0] & ~NO_HASH not in VERSIONS or value[1] not in INSTRUCTIONS:
        return None
    begin = 2 if value[0] & NO_HASH else 2 + HASH_BYTES
    if not value[0] & ~NO_HASH:
        return Subscription(value[begin:], None) if len(value) >= begin else None
    end = len(value) - PARTITION_BYTES
    if end < begin:
        return None
    return Subscription(value[begin:end], int.from_bytes(value[end:], "big", signed=True))


def rewritten(values: Sequence[bytes | None], left: LeftTable, *, where: str) -> list[bytes | None]:
    """Return wrappers with the partitions that their primary keys have in the new generation's left table.

    :param values: the values of records. Tombstones (``None``) stay as they are.
    :param where: the topic and partition, for errors.
    :raises UnsafeState: a value is no wrapper, or names another partition than the left table's partitioner.
    """
    found = [(index, *_parsed(value, where)) for index, value in enumerate(values) if value is not None]
    named = [each for each in found if each[2] is not None]
    keys = [key for _, key, _ in named]
    partitioner = partitioner_named(left.partitioner, left.key_topic)
    before = partitioner.partition_batch(keys, left.source_partitions)
    after = partitioner.partition_batch(keys, left.target_partitions)
    result = list(values)
    for (index, key, partition), home, target in zip(named, before, after, strict=True):
        if partition != home:
            raise UnsafeState(
                where,
                found=f"a subscription of primary key 0x{key.hex()} that names partition {partition}",
                expected=f"partition {home} of {left.source_partitions}, where {left.partitioner} puts that key",
                remedy="Declare the partitioner of the left table's topics. If the key serde writes other bytes "
                "here than in the left table, the join can't be moved.",
            )
        result[index] = (values[index] or b"")[:-PARTITION_BYTES] + target.to_bytes(PARTITION_BYTES, "big")
    return result


def _parsed(value: bytes, where: str) -> Subscription:
    found = parse(value)
    if found is None:
        raise UnsafeState(
            where,
            found=f"the value 0x{value[:20].hex()}",
            expected="a subscription wrapper of version 0 or 1",
            remedy="The store is of another type, or a newer Kafka Streams wrote it; declare its real type.",
        )
    return found


class LeftTable(Value):
    """The left table of a foreign-key join. Every subscription names a partition of this table.

    :param partitioner: the declared partitioner of the table's topics.
    :param key_topic: the topic name that a user's partitioner gets, as in the topology.
    :param source_partitions: the partition count of its topics in the running generation.
    :param target_partitions: the partition count in the new generation.
    """

    partitioner: str
    key_topic: str = ""
    source_partitions: int
    target_partitions: int
