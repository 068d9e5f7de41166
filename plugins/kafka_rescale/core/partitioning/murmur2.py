"""Kafka's hash of a key (``org.apache.kafka.common.utils.Utils.murmur2``), one by one and in batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


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
    """Return murmur2 of many keys. numpy works on all keys of one length at a time.

    In Python, a key costs microseconds, and hashing would be the slowest stage of the copy. With keys grouped by
    length, each step of the hash is one array operation.
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
