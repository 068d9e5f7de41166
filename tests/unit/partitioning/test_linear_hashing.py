"""Linear hashing meets the requirements of KIP-287."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.partitioning.linear_hashing import LinearHashing, coarser, doubled
from kafka_rescale.core.partitioning.partitioners import Murmur2, known_partitioners, partitioner_named

KEYS = [f"key-{i}".encode() for i in range(2000)]
initials = st.integers(1, 12)


def test_a_round_begins_at_the_initial_count_times_a_power_of_two() -> None:
    assert [doubled(3, n) for n in (3, 4, 5, 6, 7, 11, 12, 13)] == [3, 3, 3, 6, 6, 6, 12, 12]


@given(initials, st.integers(0, 30))
def test_a_new_partition_takes_keys_of_one_partition_and_of_no_other(initial: int, more: int) -> None:
    n = initial + more
    before, after = (LinearHashing(initial).partition_batch(KEYS, count) for count in (n, n + 1))
    moved = {(a, b) for a, b in zip(before, after, strict=True) if a != b}
    assert moved <= {(coarser(n, n, initial), n)}


@given(initials, st.integers(0, 20), st.integers(0, 20))
def test_growing_partitions_moves_no_key_between_processors(
    initial: int, processors: int, partitions: int
) -> None:
    """Keys → partitions → processors equals keys → processors, as long as the number of processors stays."""
    p, n = initial + processors, initial + processors + partitions
    hashing = LinearHashing(initial)
    assert [coarser(x, p, initial) for x in hashing.partition_batch(KEYS, n)] == hashing.partition_batch(KEYS, p)


def test_the_example_of_the_kip() -> None:
    """10 partitions and processors. Partitions grow to 15, then processors to 15, then partitions to 18."""
    hashing = LinearHashing(10)
    at_10, at_15, at_18 = (hashing.partition_batch(KEYS, n) for n in (10, 15, 18))
    assert [coarser(p, 10, 10) for p in at_15] == at_10
    assert {(a, b) for a, b in zip(at_10, at_15, strict=True) if a != b} == {(i, i + 10) for i in range(5)}
    assert [coarser(p, 15, 10) for p in at_18] == at_15
    assert {(a, b) for a, b in zip(at_15, at_18, strict=True) if a != b} == {(i, i + 10) for i in (5, 6, 7)}


def test_at_the_initial_count_and_its_doublings_it_is_murmur2() -> None:
    for n in (3, 6, 12, 24):
        assert LinearHashing(3).partition_batch(KEYS, n) == Murmur2().partition_batch(KEYS, n)
    assert LinearHashing(3).partition_batch(KEYS, 4) != Murmur2().partition_batch(KEYS, 4)


@given(st.lists(st.binary(max_size=40), max_size=30), initials, st.integers(0, 30))
def test_a_batch_equals_single_keys(batch: list[bytes], initial: int, more: int) -> None:
    hashing = LinearHashing(initial)
    assert hashing.partition_batch(batch, initial + more) == [hashing.partition(k, initial + more) for k in batch]


def test_fewer_partitions_than_at_the_beginning_are_refused() -> None:
    with pytest.raises(UnsafeState) as error:
        LinearHashing(4).partition_batch([b"k"], 3)
    assert str(error.value) == (
        "partitioner linear-hashing:4: found 3 partitions; expected at least the initial 4. Declare the count "
        "that the topic was created with: below it linear hashing has no meaning."
    )


def test_the_initial_count_is_part_of_the_name() -> None:
    assert partitioner_named("linear-hashing:3").partition_batch(KEYS, 5) == LinearHashing(3).partition_batch(
        KEYS, 5
    )


def test_candidates_for_a_topic_address_differently_from_each_other() -> None:
    candidates = list(known_partitioners(6))
    assert [c.name for c in candidates] == ["murmur2", "crc32", "linear-hashing:5", "linear-hashing:4"]
    assert len({tuple(c.partition_batch(KEYS, 6)) for c in candidates}) == len(candidates)
