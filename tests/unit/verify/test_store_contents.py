"""The comparison of outer joins leaves out only what depends on the order of partitions."""

from __future__ import annotations

import pytest

from tests.integration.copy_helpers import Record, per_key
from tests.support.store_contents import differences, settled, without_buried

RESULTS = {b"k": [b"a+1", b"a+2", b"b+null", b"null+3"]}


def test_a_record_that_was_called_lonely_too_early_makes_no_difference() -> None:
    early = {b"k": [b"a+1", b"a+2", b"a+null", b"b+null", b"null+2", b"null+3"]}
    assert differences(settled(RESULTS), settled(early)) == []


def record(value: bytes | None) -> Record:
    return Record(b"key", value, 1)


def test_where_a_key_was_before_a_growth_in_place_it_may_be_buried() -> None:
    moved = {1: [record(b"old"), record(None)], 5: [record(b"old"), record(b"new")]}
    assert per_key(without_buried(moved)) == {b"key": moved[5]}
    deleted = {1: [record(b"old"), record(None)], 5: [record(b"old"), record(None)]}
    assert per_key(without_buried(deleted)) == {b"key": deleted[5]}


def test_a_key_that_was_not_buried_is_in_two_partitions() -> None:
    twice = {1: [record(b"old")], 5: [record(b"old"), record(b"new")]}
    with pytest.raises(AssertionError, match="in two partitions"):
        per_key(without_buried(twice))


def test_any_other_result_that_is_lost_or_doubled_does() -> None:
    for at in range(4):
        lost = {b"k": RESULTS[b"k"][:at] + RESULTS[b"k"][at + 1 :]}
        doubled = {b"k": [*RESULTS[b"k"], RESULTS[b"k"][at]]}
        for found in (lost, doubled):
            assert differences(settled(RESULTS), settled(found)), found
