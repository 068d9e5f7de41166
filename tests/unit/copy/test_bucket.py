"""One producer for several partitions: no record is committed without its partition's position, and none twice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from kafka_rescale.core.errors import Outage, RescaleError, UnsafeState
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.failures import Rewound
from kafka_rescale.kafka.copy import bucket as copy_bucket
from kafka_rescale.kafka.copy.bucket import Bucket
from kafka_rescale.kafka.copy.commits import REWINDS, Commits
from kafka_rescale.kafka.copy.marks import RESETTING, Mark, Position
from kafka_rescale.kafka.copy.settings import BULK, live
from kafka_rescale.kafka.copy.units import CopyUnit, units_of
from kafka_rescale.kafka.copy.writer import UnitWriter

from tests.integration.copy_helpers import changelog

CONNECTION = KafkaConnection({"bootstrap.servers": "nowhere:9092"})
NOBODY: Any = None
MOVE: Move = changelog("a", "key-value", 1, 2).model_copy(update={"source_partitions": 3, "producers": 1})
REFUSED = UnsafeState("a record", found="too much", expected="less", remedy="Shrink it.")
AWAY = Outage("a broker", found="nothing", expected="an answer", remedy="Run again.")


class Producer:
    """Records the positions of every transaction. It fails as the test says."""

    def __init__(self, _: object, what: str, transactional_id: str, *__: object) -> None:
        self.what, self.transactional_id, self.throttled_ms = what, transactional_id, 0
        self.committed: list[dict[int, tuple[int, dict[str, Any]]]] = []
        self.failures: list[RescaleError] = []

    def commit(self, offsets: Sequence[TopicPartition], _: object) -> None:
        if self.failures:
            raise Rewound(self.failures.pop(0))
        self.committed.append({o.partition: (o.offset, json.loads(o.metadata)) for o in offsets})


@dataclass
class World:
    """A bucket of three partitions, and what its producer was given."""

    bucket: Bucket
    producer: Any

    def writer(self, partition: int) -> UnitWriter:
        return self.bucket.writers[MOVE.source, partition]

    def has_written(self, partition: int, records: int, size: int = 0) -> UnitWriter:
        writer = self.writer(partition)
        writer.position += records
        writer.pending_records += records
        writer.pending_bytes += size
        return writer

    def offsets(self) -> list[dict[int, int]]:
        return [{p: offset for p, (offset, _) in each.items()} for each in self.producer.committed]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(copy_bucket, "UnitProducer", Producer)
    bucket = Bucket(CONNECTION, units_of([MOVE]), "green")
    for partition in range(3):
        bucket.writers[MOVE.source, partition].begin(Position(10, Mark(records=10)), committed=True)
    return World(bucket, bucket._producer)


def commits_of(bucket: Bucket, explain: Any = lambda _, reason, *__: reason, settings: Any = BULK) -> Commits:
    return Commits(NOBODY, settings, ThreadPoolExecutor(1), explain, [bucket])


def test_a_commit_has_the_positions_of_all_whose_records_it_makes_visible(world: World) -> None:
    world.has_written(2, 5)
    world.bucket.commit(NOBODY, [world.has_written(0, 3)])
    assert world.offsets() == [{0: 13, 2: 15}]
    assert [world.writer(p).mark.records for p in range(3)] == [13, 10, 15]
    assert not world.bucket.pending_records


def test_neither_does_a_commit_of_one_partition_alone_leave_out_others(world: World) -> None:
    """A restart commits its mark for one partition, and a snapshot its rows."""
    world.has_written(2, 5)
    world.writer(1).commit_at(NOBODY, Position(0, Mark(state=RESETTING)))
    (found,) = world.producer.committed
    assert {p: (offset, mark["state"]) for p, (offset, mark) in found.items()} == {1: (0, RESETTING), 2: (15, "")}


def test_the_time_that_the_producer_has_waited_is_told_once(world: World) -> None:
    for throttled_ms in (70, 100):
        world.producer.throttled_ms = throttled_ms
        world.bucket.commit(NOBODY, [world.has_written(p, 1) for p in range(3)])
    marks = [mark for _, mark in world.producer.committed[-1].values()]
    assert sum(mark["throttled_ms"] for mark in marks) == 100


def test_an_aborted_commit_takes_every_partition_back(world: World) -> None:
    writers, commits = [world.has_written(p, 1 + p) for p in range(3)], commits_of(world.bucket)
    world.producer.failures = [AWAY]
    assert not commits.commit(writers[:1])
    assert commits.has_rewound
    assert [w.position for w in writers] == [10, 10, 10]
    assert (world.bucket.pending_records, world.offsets()) == (0, [])


def test_aborts_of_one_producer_count_together(world: World) -> None:
    commits = commits_of(world.bucket)
    world.producer.failures = [AWAY] * (REWINDS + 1)
    for round in range(REWINDS):
        assert not commits.commit([world.has_written(round % 3, 1)])
    with pytest.raises(Outage, match="a broker"):
        commits.commit([world.has_written(0, 1)])


def test_the_record_that_was_refused_is_looked_for_in_all_partitions_of_the_transaction(world: World) -> None:
    looked: list[tuple[int, int, int]] = []
    named = UnsafeState("record 11 of partition 2", found="a", expected="b", remedy="c")

    def explain(unit: CopyUnit, reason: RescaleError, start: int, end: int) -> RescaleError:
        looked.append((unit.partition, start, end))
        return named if unit.partition == 2 else reason

    commits = commits_of(world.bucket, explain)
    world.has_written(2, 2)
    world.producer.failures = [REFUSED]
    with pytest.raises(UnsafeState, match="record 11 of partition 2"):
        commits.commit([world.has_written(0, 1)])
    assert looked == [(0, 10, 11), (2, 10, 12)]


def test_a_transaction_is_as_large_as_the_records_of_all_its_partitions(world: World) -> None:
    commits = commits_of(world.bucket, settings=replace(BULK, commit_records=10, commit_seconds=3600.0))
    written = [world.has_written(0, 5), world.has_written(2, 4)]
    assert commits.due(world.bucket.writers.values()) == []
    world.has_written(2, 1)
    assert commits.due(world.bucket.writers.values()) == written


def test_live_everything_is_due_soon(world: World) -> None:
    commits = commits_of(world.bucket, settings=live(1))
    written = world.has_written(1, 1)
    while not (due := commits.due(world.bucket.writers.values())):
        assert live(1).commit_seconds < 0.001
    assert due == [written]


def test_live_with_very_many_partitions_commits_are_rarer(world: World) -> None:
    """At most 20,000 positions per second, and never less often than a restore commits."""
    assert live(1_000).commit_seconds == 0.05
    assert live(40_000).commit_seconds == 2
    assert live(1_000_000).commit_seconds == BULK.commit_seconds
    assert [live(partitions).fetch_wait_ms for partitions in (1, 1_000, 4_000, 100_000)] == [20, 20, 80, 100]
    commits = commits_of(world.bucket, settings=live(1_000_000))
    world.has_written(1, 1)
    assert commits.due(world.bucket.writers.values()) == []


def test_an_error_says_whose_producer_it_is(world: World) -> None:
    assert world.producer.what == f"copy of {MOVE.source}-0 and of 2 more of its producer"
    assert world.producer.transactional_id == f"kafka-rescale-green-{MOVE.source}-0"
