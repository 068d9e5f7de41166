"""Functions such as users declare: ``(topic, key, n) -> partition``; of a changelog key, its partitioning key."""

from __future__ import annotations

from itertools import count
from zlib import adler32

_CALLS = count()


def by_adler(topic: str, key: bytes, n: int) -> int:
    """A partitioner that no client knows by name; it depends on the topic, too."""
    return adler32(topic.encode() + key) % n


def pinned(topic: str, key: bytes, n: int) -> int:
    """Static (KIP-878): by the digits at a key's end, whatever the count."""
    return int(key.rpartition(b"-")[2]) % 4


def numbered(topic: str, key: bytes, n: int) -> int:
    """Static (KIP-878): a key's own number, also where the topic has no such partition yet."""
    return int(key.rpartition(b"-")[2]) % 8


def claims_to_be_static(topic: str, key: bytes, n: int) -> int:
    """Moves with the count all the same."""
    return int(key.rpartition(b"-")[2]) % n


def one_too_high(topic: str, key: bytes, n: int) -> int:
    """Outside of the topic."""
    return n


def changes_its_mind(topic: str, key: bytes, n: int) -> int:
    """Another partition at every call."""
    return next(_CALLS) % n


def multicast(topic: str, key: bytes, n: int) -> set[int]:
    """What ``StreamPartitioner#partitions`` may return."""
    return {0, n - 1}


def undecided(topic: str, key: bytes, n: int) -> int | None:
    """Leaves it to the producer."""
    return None


def fails(topic: str, key: bytes, n: int) -> int:
    """Expects another key."""
    return int(key)


def of_text(key: bytes) -> str:
    """What a function answers that takes keys for text."""
    return key.decode().rpartition("-")[0]


def before_a_bar(key: bytes) -> bytes:
    """Expects that every key has one."""
    return key[: key.index(b"|")]


NOT_A_FUNCTION = 3
