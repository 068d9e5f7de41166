"""The comparison of records in flight finds every kind of mistake."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kafka_rescale.core.formats.sequences import Sequences, differences

Record = tuple[int, bytes | None, bytes | None, int, list[tuple[str, bytes | None]]]
RECORDS: list[Record] = [
    (0, b"a", b"1", 10, []),
    (0, b"a", b"2", 11, [("h", b"x")]),
    (1, b"b", None, 12, []),
    (0, b"a", b"1", 10, []),
    (1, None, b"p", 13, []),
    (1, None, b"q", 14, []),
]


def sequences(records: list[Record]) -> Sequences:
    found = Sequences()
    for record in records:
        found.add(*record)
    return found


def replaced(index: int, **changes: object) -> list[Record]:
    names = ("partition", "key", "value", "timestamp", "headers")
    changed = tuple(changes.get(name, old) for name, old in zip(names, RECORDS[index], strict=True))
    return [*RECORDS[:index], changed, *RECORDS[index + 1 :]]  # type: ignore[list-item]


MUTATIONS: dict[str, Callable[[], list[Record]]] = {
    "dropped": lambda: RECORDS[1:],
    "dropped without a key": lambda: RECORDS[:-1],
    "doubled": lambda: [*RECORDS, RECORDS[0]],
    "reordered": lambda: [RECORDS[1], RECORDS[0], *RECORDS[2:]],
    "another value": lambda: replaced(0, value=b"x"),
    "a value instead of a deletion": lambda: replaced(2, value=b""),
    "another time": lambda: replaced(0, timestamp=9),
    "another header": lambda: replaced(1, headers=[("h", b"y")]),
    "no header": lambda: replaced(1, headers=[]),
    "another partition": lambda: replaced(2, partition=0),
    "invented": lambda: [*RECORDS, (0, b"new", b"1", 1, [])],
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_every_mutation_is_found(name: str) -> None:
    assert differences(sequences(RECORDS), sequences(MUTATIONS[name]()))


def test_records_of_different_keys_may_come_in_any_order() -> None:
    assert not differences(
        sequences(RECORDS), sequences([RECORDS[2], RECORDS[5], RECORDS[4], *RECORDS[:2], RECORDS[3]])
    )


def test_a_long_list_of_differences_is_cut() -> None:
    many: list[Record] = [(0, b"%d" % i, b"", 0, []) for i in range(20)]
    assert differences(sequences(many), Sequences())[-1] == "and 15 keys more"
