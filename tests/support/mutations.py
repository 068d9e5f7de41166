"""What the tests of verify compare: the logs of a store before and after, with mistakes in the second log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kafka_rescale.core.verify.pairs import ComparedLog, StorePair

from tests.support.changelogs import Placed

Client = Mapping[str, str]
Mutation = Callable[[list[Placed]], list[Placed]]

SINCE = 1_700_000_000_000
"""Timestamp of the first record, ms."""


def pair_of(blue: ComparedLog, green: ComparedLog, store_type: str, **changes: object) -> StorePair:
    """Return the comparison of two logs of a store."""
    return StorePair(store="totals", store_type=store_type, blue=blue, green=green).model_copy(update=changes)


def of_key(records: Sequence[Placed], key: bytes) -> list[int]:
    """Return the indexes of a key's records."""
    return [i for i, (_, record) in enumerate(records) if record.key == key]


def changed(records: Sequence[Placed], index: int, **changes: object) -> list[Placed]:
    """Return the records with one of them changed."""
    partition, record = records[index]
    return [*records[:index], (partition, replace(record, **changes)), *records[index + 1 :]]  # type: ignore[arg-type]


def moved(records: Sequence[Placed], key: bytes, to: Callable[[int], int]) -> list[Placed]:
    """Return the records with those of a key in another partition."""
    return [(to(p), r) if r.key == key else (p, r) for p, r in records]
