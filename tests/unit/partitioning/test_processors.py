"""KIP-287: growing partitions moves nothing between processors. A new processor warms up beside the old ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.partitioning.linear_hashing import LinearHashing, ancestors
from kafka_rescale.core.partitioning.partitioners import Murmur2
from kafka_rescale.core.partitioning.processors import NewProcessor, Processors, new_processors
from kafka_rescale.core.processing.state_copies import CopyMark, Restored, is_almost_caught_up

KEYS = [f"key-{i}".encode() for i in range(200)]
PROPERTY = settings(deadline=None)
initials = st.integers(1, 8)
more = st.integers(0, 20)


def key_owners(processors: Processors) -> list[int]:
    """The processor of each key."""
    partitions = LinearHashing(processors.initial).partition_batch(KEYS, processors.partitions)
    return [processors.processor(p) for p in partitions]


def test_a_job_begins_with_one_processor_per_partition() -> None:
    begun = Processors.begin(4)
    assert (begun.initial, begun.count, begun.partitions) == (4, 4, 4)
    assert [begun.of(n) for n in range(4)] == [(0,), (1,), (2,), (3,)]


def test_the_example_of_the_kip() -> None:
    """10 partitions and processors. Partitions grow to 15, then processors to 15, then partitions to 18."""
    at_10 = Processors.begin(10).with_partitions(15)
    assert [at_10.of(n) for n in (0, 4, 5, 9)] == [(0, 10), (4, 14), (5,), (9,)]
    at_15 = at_10.with_count(15)
    assert [at_15.of(n) for n in (0, 4, 10, 14)] == [(0,), (4,), (10,), (14,)]
    at_18 = at_15.with_partitions(18)
    assert [at_18.of(n) for n in (5, 6, 7, 8, 10)] == [(5, 15), (6, 16), (7, 17), (8,), (10,)]
    assert at_18.initial == 10, "it is remembered for ever"


@PROPERTY
@given(initials, more, more, more)
def test_growing_partitions_moves_no_partition_and_no_key_between_processors(
    initial: int, processors: int, partitions: int, grown: int
) -> None:
    before = Processors(initial, initial + processors, initial + processors + partitions)
    after = before.with_partitions(before.partitions + grown)
    for number in range(before.count):
        assert set(before.of(number)) <= set(after.of(number))
    assert key_owners(before) == key_owners(after)


def test_with_kafkas_default_partitioner_growing_partitions_would_move_keys_between_processors() -> None:
    before = Processors.begin(10)
    after = before.with_partitions(15)
    owners = [
        [job.processor(p) for p in Murmur2().partition_batch(KEYS, job.partitions)] for job in (before, after)
    ]
    assert sum(a != b for a, b in zip(*owners, strict=True)) > len(KEYS) / 2


@PROPERTY
@given(initials, more, more, more)
def test_growing_processors_takes_partitions_from_existing_ones_only_for_new_ones(
    initial: int, processors: int, added: int, partitions: int
) -> None:
    before = Processors(initial, initial + processors, initial + processors + added + partitions)
    after = before.with_count(before.count + added)
    for partition in range(before.partitions):
        now = after.processor(partition)
        assert now == before.processor(partition) or now >= before.count


@PROPERTY
@given(initials, more, more)
def test_every_partition_has_one_processor_and_every_processor_a_partition(
    initial: int, processors: int, partitions: int
) -> None:
    job = Processors(initial, initial + processors, initial + processors + partitions)
    assert sorted(p for n in range(job.count) for p in job.of(n)) == list(range(job.partitions))
    assert all(job.of(n) for n in range(job.count))


@PROPERTY
@given(initials, more, more, more)
def test_a_new_processor_reads_every_partition_in_which_its_keys_have_ever_been(
    initial: int, processors: int, added: int, partitions: int
) -> None:
    before = Processors(initial, initial + processors, initial + processors + added + partitions)
    after = before.with_count(before.count + added)
    ever = [LinearHashing(initial).partition_batch(KEYS, n) for n in range(initial, after.partitions + 1)]
    owners = key_owners(after)
    for new in new_processors(before, after):
        assert new.consumes == after.of(new.number)
        assert set(new.consumes) <= set(new.reads)
        mine = [k for k, owner in enumerate(owners) if owner == new.number]
        assert {places[k] for places in ever for k in mine} <= set(new.reads)


def test_what_a_new_processor_consumes_and_reads() -> None:
    job = Processors.begin(2).with_partitions(8)
    assert new_processors(job, job.with_count(4)) == (
        NewProcessor(2, consumes=(2, 6), reads=(0, 2, 6)),
        NewProcessor(3, consumes=(3, 7), reads=(1, 3, 7)),
    )
    assert ancestors(7, 2) == (3, 1)


def restored(to: int, end: int) -> Restored:
    return Restored(("app-counts-changelog", 0), to, end, CopyMark())


def test_a_new_processor_takes_over_when_what_it_has_restored_has_almost_reached_the_end() -> None:
    assert not is_almost_caught_up([restored(0, 1000), restored(0, 500)], 100), "at first T2 is 0"
    assert not is_almost_caught_up([restored(950, 1000), restored(449, 500)], 100)
    assert is_almost_caught_up([restored(950, 1000), restored(450, 500)], 100)
    assert is_almost_caught_up([], 0), "what has no state has nothing to restore"


def test_more_processors_than_partitions_are_refused() -> None:
    with pytest.raises(Refused) as error:
        Processors.begin(4).with_count(5)
    assert str(error.value) == (
        "processors: found 5 for 4 partitions; expected at most one processor per partition. Expand the "
        "partitions of the input topic first, then the processors."
    )
    assert Processors.begin(4).with_partitions(5).with_count(5).count == 5


def test_nothing_ever_shrinks() -> None:
    job = Processors(2, 4, 8)
    with pytest.raises(Refused, match="found 7; expected at least the present 8"):
        job.with_partitions(7)
    with pytest.raises(Refused, match="found 3; expected at least the present 4"):
        job.with_count(3)
    with pytest.raises(Refused, match="at least the initial 2"):
        Processors(2, 1, 8)
    with pytest.raises(Refused, match="which is 1 or more"):
        Processors(0, 1, 8)


def test_partitions_and_processors_do_not_grow_in_one_step() -> None:
    with pytest.raises(Refused, match="as many partitions before as after"):
        new_processors(Processors.begin(2), Processors.begin(2).with_partitions(4).with_count(4))
