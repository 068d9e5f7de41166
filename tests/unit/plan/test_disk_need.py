"""How many bytes one log dir gets, compared with placements that are counted out, at each boundary."""

from __future__ import annotations

from itertools import product

import pytest
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.disk_need import TopicNeed, carried_share, topic_need
from kafka_rescale.core.plan.plan import Move, MoveKind


def move(before: int, after: int, *, in_place: bool = False, partitioner: str = "murmur2") -> Move:
    source = "shop-totals-changelog"
    return Move(
        kind=MoveKind.CHANGELOG,
        source=source,
        target=source if in_place else "shop-g2-totals-changelog",
        store="totals",
        partitioner=partitioner,
        source_partitions=before,
        target_partitions=after,
    )


def even_placement(partitions: int, replicas: int, brokers: int, log_dirs: int) -> dict[tuple[int, int], int]:
    """Place each replica on the next broker and its next log dir, and count the replicas."""
    counts: dict[tuple[int, int], int] = dict.fromkeys(product(range(brokers), range(log_dirs)), 0)
    used = [0] * brokers
    for number in range(partitions * replicas):
        broker = number % brokers
        counts[broker, used[broker] % log_dirs] += 1
        used[broker] += 1
    return counts


@pytest.mark.parametrize(
    ("partitions", "replicas", "brokers", "log_dirs"),
    [
        (8, 1, 1, 1),
        (8, 3, 3, 1),
        (8, 3, 3, 2),
        (8, 2, 3, 1),
        (1, 1, 3, 1),
        (1, 3, 3, 4),
        (7, 2, 5, 3),
        (40, 3, 6, 4),
    ],
)
def test_no_log_dir_gets_more_than_is_said_even_if_one_broker_gets_one_replica_more(
    partitions: int, replicas: int, brokers: int, log_dirs: int
) -> None:
    need = TopicNeed("a", "b", 1000 * partitions, 1000 * partitions, partitions, replicas)
    counts = even_placement(partitions, replicas, brokers, log_dirs)
    share, one_more = 1000 * max(counts.values()), 1000 * (replicas < brokers)
    assert share <= need.on_one(brokers, log_dirs) <= min(need.written, share + one_more)
    if log_dirs == 1:
        assert need.on_one(brokers, 1) == min(need.written, share + one_more)
    assert need.everywhere == 1000 * sum(counts.values())


def test_one_broker_never_holds_two_replicas_of_a_partition() -> None:
    assert TopicNeed("a", "b", 800, 800, 8, 3).on_one(1, 1) == 800


def test_a_copy_writes_the_whole_log_once_per_replica() -> None:
    need = topic_need(move(4, 8), 1_000, 3)
    assert (need.written, need.partitions, need.everywhere) == (1_000, 8, 3_000)


def test_of_what_is_in_flight_it_writes_the_unprocessed_part() -> None:
    assert topic_need(move(4, 8), 1_000, 1, share=0.25).written == 250
    assert topic_need(move(4, 8), 1_000, 1, share=7.0).written == 1_000


@pytest.mark.parametrize(("before", "after"), [(4, 8), (4, 6), (4, 12), (3, 5), (1, 9), (6, 9)])
def test_in_place_it_writes_the_keys_that_move_and_their_tombstones(before: int, after: int) -> None:
    keys = [f"key-{i}".encode() for i in range(20_000)]
    murmur2 = partitioner_named("murmur2")
    pairs = zip(murmur2.partition_batch(keys, before), murmur2.partition_batch(keys, after), strict=True)
    moving = sum(a != b for a, b in pairs) / len(keys)
    need = topic_need(move(before, after, in_place=True), 1_000_000, 1)
    assert need.written / 2_000_000 == pytest.approx(moving, abs=0.02)
    assert need.partitions == (after - before if after % before == 0 else after)


def test_in_place_a_function_may_move_every_key_and_a_static_one_none() -> None:
    assert topic_need(move(4, 8, in_place=True, partitioner="mine:place"), 1_000, 1).written == 2_000
    assert topic_need(move(4, 8, in_place=True, partitioner="static:mine:place"), 1_000, 1).written == 0
    assert topic_need(move(8, 8, in_place=True), 1_000, 1).written == 0


def test_what_is_carried_is_what_is_not_processed() -> None:
    assert carried_share({0: 10, 1: 0}, {0: 20}, {0: 30, 1: 10}) == pytest.approx(20 / 30)
    assert carried_share({0: 10}, {0: 5}, {0: 30}) == 1.0  # the log begins after the committed offset
    assert carried_share({0: 30}, {}, {0: 30}) == 0.0
    assert carried_share({}, {}, {}) == 0.0
