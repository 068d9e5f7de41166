"""A recommendation is enough for the measured load, not more, and says which keys no count can help."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.sizing import (
    HEADROOM,
    Advice,
    TaskLoad,
    recommend,
    recommended_target,
    simulated,
    weights,
)

MURMUR2 = partitioner_named("murmur2")
MANY = {f"customer-{i}".encode(): 1.0 for i in range(4_000)}
FEW = {key: 1.0 for key in list(MANY)[:50]}
UNHURRIED = settings(deadline=None, max_examples=50)


def loads(arrived: float, processed: float, lag: int = 0, count: int = 4) -> list[TaskLoad]:
    """The same load on every task."""
    return [TaskLoad(p, arrived, processed, lag) for p in range(count)]


def advice(measured: list[TaskLoad], rates: dict[bytes, float] | None = None, threads: int = 1) -> Advice:
    return recommend("orders", measured, MANY if rates is None else rates, MURMUR2, threads=threads)


def test_what_a_task_that_stands_still_can_process_is_not_known() -> None:
    """Otherwise its capacity would be 0, and no count would help any key."""
    assert advice(loads(1000, 0, lag=5000)).capacity is None
    assert advice([*loads(1000, 0, lag=5000, count=3), TaskLoad(3, 1000, 400, 5000)]).capacity == 400


def test_tasks_that_keep_up_need_no_more() -> None:
    found = advice(loads(1000, 1000))
    assert found.then.partitions == 4
    assert "keeps up" in found.reason
    assert found.capacity is None


def test_tasks_that_are_behind_but_catching_up_have_not_come_to_their_limit() -> None:
    assert advice(loads(1000, 1500, lag=10_000)).then.partitions == 4


def test_the_smallest_multiple_is_recommended_that_leaves_room() -> None:
    """4,000 records/s arrive. A task can process 600, or 420 with headroom.

    So 8 partitions are too few, 12 are not.
    """
    found = advice(loads(1000, 600, lag=5000))
    assert found.capacity == 600
    assert found.then.partitions == 12
    assert found.then.busiest <= 600 * HEADROOM < found.candidates[-2].busiest
    assert [each.partitions for each in found.candidates] == [4, 8, 12]


def test_a_key_that_is_too_heavy_is_named_because_no_count_helps_it() -> None:
    found = advice(loads(1000, 600, lag=5000), {**MANY, b"whale": 900.0})
    assert found.heaviest[0][0] == b"whale"
    assert "one key alone has 900.0 records/s" in found.reason
    assert "no count helps" in found.reason


@pytest.mark.parametrize(("arrived", "target"), [(10, 4), (1000, 12)])
def test_a_target_is_recommended_for_the_topics_that_follow_it(arrived: float, target: int) -> None:
    """Of two topics, one stays at its 16 partitions whatever the target is."""
    derived = advice(loads(arrived, 600, lag=5000))
    fixed = replace(advice(loads(10, 600, count=16)), follows=False)
    assert recommended_target([fixed, derived]) == target


def test_without_a_topic_that_follows_a_target_none_is_recommended() -> None:
    assert recommended_target([replace(advice(loads(1000, 600, lag=5000)), follows=False)]) is None
    assert recommended_target([]) is None


@pytest.mark.parametrize(("threads", "partitions"), [(4, 4), (5, 8), (9, 12)])
def test_every_thread_gets_a_task(threads: int, partitions: int) -> None:
    assert advice(loads(10, 10), threads=threads).then.partitions == partitions


def test_more_than_can_be_recommended_is_said() -> None:
    assert "even 32 times" in advice(loads(100_000, 1.5, lag=1), {k: 1.0 for k in MANY}).reason


def test_an_empty_topic_needs_no_more() -> None:
    assert advice(loads(0, 0), {}).then.partitions == 4


def test_samples_of_a_busy_partition_stand_for_more_records() -> None:
    measured = [TaskLoad(0, 90, 90, 0), TaskLoad(1, 10, 10, 0)]
    assert weights([(0, b"a"), (0, b"a"), (0, b"b"), (1, b"c")], measured) == {b"a": 60, b"b": 30, b"c": 10}


@UNHURRIED
@given(
    rates=st.dictionaries(st.binary(min_size=1, max_size=8), st.floats(0.1, 100), min_size=1, max_size=50),
    count=st.integers(1, 12),
    factor=st.integers(2, 6),
)
def test_a_multiple_never_makes_the_busiest_partition_busier(
    rates: dict[bytes, float], count: int, factor: int
) -> None:
    """A multiple splits each partition and mixes none with another. This is why multiples are preferred."""
    few, many = simulated(rates, MURMUR2, count), simulated(rates, MURMUR2, count * factor)
    assert many.busiest <= few.busiest + 1e-6


@UNHURRIED
@given(
    arrived=st.floats(0, 10_000),
    processed=st.floats(0, 10_000),
    lag=st.integers(0, 10_000),
    threads=st.integers(1, 64),
)
def test_a_recommendation_is_a_multiple_and_never_fewer(
    arrived: float, processed: float, lag: int, threads: int
) -> None:
    found = advice(loads(arrived, processed, lag), FEW, threads)
    assert found.then.partitions % 4 == 0
    assert found.then.partitions >= 4
    assert found.candidates[-1] == found.then
