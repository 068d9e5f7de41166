"""Functions that a user could declare: ``(topic, key, n) -> partition``, or changelog key -> partitioning key."""

from __future__ import annotations

from itertools import count
from zlib import adler32

import numpy as np

_CALLS = count()


def by_adler(topic: str, key: bytes, n: int) -> int:
    """A partitioner that no client knows by name. It depends on the topic, too."""
    return adler32(topic.encode() + key) % n


def pinned(topic: str, key: bytes, n: int) -> int:
    """Static (KIP-878): the digits at a key's end decide, whatever the count."""
    return int(key.rpartition(b"-")[2]) % 4


def numbered(topic: str, key: bytes, n: int) -> int:
    """Static (KIP-878): a key's own number, even if the topic has no such partition yet."""
    return int(key.rpartition(b"-")[2]) % 8


def by_range(topic: str, key: bytes, n: int) -> np.intp:
    """Static (KIP-878): the range of the first byte decides. The answer is an integer of numpy."""
    return np.searchsorted([10, 20, 30, 40], key[0])


def is_even(topic: str, key: bytes, n: int) -> bool:
    """Return True or False, which are no partitions, although Python counts them among the integers."""
    return key[-1] % 2 == 0


def claims_to_be_static(topic: str, key: bytes, n: int) -> int:
    """Not static: its answer changes with the count."""
    return int(key.rpartition(b"-")[2]) % n


def one_too_high(topic: str, key: bytes, n: int) -> int:
    """Return a partition that the topic does not have."""
    return n


def changes_its_mind(topic: str, key: bytes, n: int) -> int:
    """Return another partition at every call."""
    return next(_CALLS) % n


def multicast(topic: str, key: bytes, n: int) -> set[int]:
    """Return several partitions, as ``StreamPartitioner#partitions`` may."""
    return {0, n - 1}


def undecided(topic: str, key: bytes, n: int) -> int | None:
    """Return None: leave the choice to the producer."""
    return None


def fails(topic: str, key: bytes, n: int) -> int:
    """Fail, because it expects another kind of key."""
    return int(key)


def of_text(key: bytes) -> str:
    """Return text, as a function would that takes keys for text."""
    return key.decode().rpartition("-")[0]


def before_a_bar(key: bytes) -> bytes:
    """Return the key up to its bar. It fails if a key has no bar."""
    return key[: key.index(b"|")]


NOT_A_FUNCTION = 3
