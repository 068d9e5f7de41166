"""A digest of the sequence of records of each key. It is equal if the same records came in the same order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

SHOWN = 5

Header = tuple[str, bytes | None]
_Key = tuple[int, bytes | None]


@dataclass
class Sequences:
    """The records of a topic, in memory proportional to the number of keys.

    No reader can rely on the order of records without a key. So the digest of these records is a sum, which does
    not depend on the order.

    :param digests: by partition and key, the number of records and the digest of their sequence.
    """

    digests: dict[_Key, tuple[int, int]] = field(default_factory=dict)
    records: int = 0

    def add(
        self,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Sequence[Header] | None,
    ) -> None:
        """Add the next record.

        :param partition: the partition where the record is, or where it has to be.
        """
        count, before = self.digests.get((partition, key), (0, 0))
        digest = int.from_bytes(hashlib.blake2b(_encoded(value, timestamp_ms, headers), digest_size=16).digest())
        if key is None:
            after = (before + digest) % 2**128
        else:
            chained = before.to_bytes(16) + digest.to_bytes(16)
            after = int.from_bytes(hashlib.blake2b(chained, digest_size=16).digest())
        self.digests[partition, key] = (count + 1, after)
        self.records += 1


def differences(expected: Sequences, found: Sequences) -> list[str]:
    """Return the differences in a few lines. Empty if both are the same."""
    wrong = [
        _difference(key, expected.digests.get(key, (0, 0)), found.digests.get(key, (0, 0)))
        for key in sorted({*expected.digests, *found.digests}, key=repr)
        if expected.digests.get(key) != found.digests.get(key)
    ]
    more = [f"and {len(wrong) - SHOWN} keys more"] if len(wrong) > SHOWN else []
    return wrong[:SHOWN] + more


def _difference(key: _Key, expected: tuple[int, int], found: tuple[int, int]) -> str:
    partition, name = key
    shown = "no key" if name is None else f"key 0x{name.hex()}"
    if expected[0] != found[0]:
        return f"{shown} in partition {partition}: {found[0]} records instead of {expected[0]}"
    return f"{shown} in partition {partition}: {found[0]} records, changed or in another order"


def _encoded(value: bytes | None, timestamp_ms: int, headers: Sequence[Header] | None) -> bytes:
    return _joined([value, str(timestamp_ms).encode()]) + encoded_headers(headers)


def encoded_headers(headers: Sequence[Header] | None) -> bytes:
    """Return headers as bytes. Other headers, or the same headers in another order, give other bytes."""
    return _joined([part for name, content in headers or () for part in (name.encode(), content)])


def _joined(parts: Sequence[bytes | None]) -> bytes:
    return b"".join(b"-" if p is None else b"+%d:%b" % (len(p), p) for p in parts)
