"""Key bytes to partition number, one by one and in batches.

Sources: ``org.apache.kafka.common.utils.Utils.murmur2`` and ``BuiltInPartitioner.partitionForKey`` (the Java
clients' default), librdkafka's ``consistent`` (CRC32, the default of every librdkafka producer).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kafka_rescale.core.errors import InvalidInput

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


class Partitioner(Protocol):
    """Maps a partitioning key to a partition of ``n``."""

    name: str

    def partition(self, key: bytes, n: int) -> int:
        """Return the partition in ``[0, n)`` of one key."""
        ...

    def partition_batch(self, keys: Sequence[bytes], n: int) -> list[int]:
        """Return the partitions of many keys, in their order."""
        ...


def murmur2(data: bytes) -> int:
    """Return Kafka's murmur2 hash as an unsigned 32-bit integer."""
    length = len(data)
    h = _SEED ^ length
    whole = length & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little")
        k = (k * _M) & _MASK
        k ^= k >> 24
        k = (k * _M) & _MASK
        h = ((h * _M) & _MASK) ^ k
    tail = length - whole
    if tail:
        h ^= int.from_bytes(data[whole:], "little")
        h = (h * _M) & _MASK
    h ^= h >> 13
    h = (h * _M) & _MASK
    return h ^ (h >> 15)


def murmur2_batch(keys: Sequence[bytes]) -> npt.NDArray[np.uint32]:
    """Return murmur2 of many keys; numpy works on all keys of one length at a time.

    Per-key Python costs microseconds and would be the slowest stage of the copy; grouping by length makes each
    step of the hash one array operation.
    """
    hashes = np.empty(len(keys), dtype=np.uint32)
    by_length: dict[int, list[int]] = {}
    for index, key in enumerate(keys):
        by_length.setdefault(len(key), []).append(index)
    for length, indexes in by_length.items():
        packed = np.frombuffer(b"".join([keys[i] for i in indexes]), dtype=np.uint8)
        hashes[indexes] = _murmur2_equal_length(packed.reshape(len(indexes), length), length)
    return hashes


def _murmur2_equal_length(rows: npt.NDArray[np.uint8], length: int) -> npt.NDArray[np.uint32]:
    m = np.uint32(_M)
    h = np.full(rows.shape[0], (_SEED ^ length) & _MASK, dtype=np.uint32)
    whole = length & ~3
    words = np.ascontiguousarray(rows[:, :whole]).view("<u4")
    with np.errstate(over="ignore"):
        for column in range(whole // 4):
            k = words[:, column] * m
            k ^= k >> np.uint32(24)
            k *= m
            h = (h * m) ^ k
        if length > whole:
            for position in range(length - whole - 1, -1, -1):
                h ^= rows[:, whole + position].astype(np.uint32) << np.uint32(8 * position)
            h *= m
        h ^= h >> np.uint32(13)
        h *= m
        h ^= h >> np.uint32(15)
    return h


class Murmur2:
    """The Java clients' and Kafka Streams' default for keyed records."""

    name = "murmur2"

    def partition(self, key: bytes, n: int) -> int:
        """Return ``toPositive(murmur2(key)) % n``; ``abs()`` would be wrong for negative hashes."""
        return (murmur2(key) & 0x7FFFFFFF) % n

    def partition_batch(self, keys: Sequence[bytes], n: int) -> list[int]:
        """Return the partitions of many keys, in their order."""
        partitions: list[int] = ((murmur2_batch(keys) & np.uint32(0x7FFFFFFF)) % np.uint32(n)).tolist()
        return partitions


class Crc32:
    """librdkafka's ``consistent`` and ``consistent_random``, the default of every librdkafka producer."""

    name = "crc32"

    def partition(self, key: bytes, n: int) -> int:
        """Return ``crc32(key) % n``."""
        return zlib.crc32(key) % n

    def partition_batch(self, keys: Sequence[bytes], n: int) -> list[int]:
        """Return the partitions of many keys, in their order."""
        return [zlib.crc32(key) % n for key in keys]


PARTITIONERS: dict[str, Partitioner] = {p.name: p for p in (Murmur2(), Crc32())}


def partitioner_named(name: str) -> Partitioner:
    """Return the partitioner of that name.

    :raises InvalidInput: no partitioner has that name.
    """
    try:
        return PARTITIONERS[name]
    except KeyError:
        raise InvalidInput(
            "partitioner",
            found=repr(name),
            expected=f"one of {', '.join(sorted(PARTITIONERS))}",
            remedy="Java producers and Kafka Streams use murmur2, librdkafka's default is crc32.",
        ) from None
