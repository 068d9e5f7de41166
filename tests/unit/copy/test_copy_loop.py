"""What a worker does when one poll returns records of some units and an error of another unit."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition
from kafka_rescale.core.cluster import LogRange
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.kafka.client.failures import Rewound
from kafka_rescale.kafka.copy import clients as copy_clients
from kafka_rescale.kafka.copy import loop as copy_loop
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.marks import Mark, Position
from kafka_rescale.kafka.copy.settings import Rules
from kafka_rescale.kafka.copy.units import CopyUnit, units_of
from kafka_rescale.kafka.reading.source_rules import SourceRules

SOURCE, POSITION = "blue", 5
MOVE = Move(
    kind=MoveKind.CHANGELOG,
    source=SOURCE,
    target="green",
    store="s",
    source_partitions=2,
    target_partitions=4,
)
TRUNCATED = "Local: Partition log truncation detected: Partition log truncation detected at offset 5 (broker b1)"


class Consumer:
    """Returns one poll, and records the assignments."""

    def __init__(self) -> None:
        self.polled: list[Any] = []
        self.assigned: list[dict[int, int]] = []

    def consume(self, _: int, __: float) -> list[Any]:
        return self.polled

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        self.assigned.append({each.partition: each.offset for each in partitions})


class Writer:
    """Records the offsets that it is given, until its transaction is aborted."""

    pending_records = pending_bytes = 0
    has_begun, restart = True, Position(0, Mark())

    def __init__(self, unit: CopyUnit) -> None:
        self.unit, self.position, self.written, self.is_aborted = unit, 0, list[int](), False

    def rewind(self) -> None:
        self.position = self.restart.offset

    def write(self, messages: Sequence[Any]) -> None:
        if self.is_aborted:
            raise Rewound(Outage("a broker", found="nothing", expected="an answer", remedy="Run again."))
        self.written += [message.offset() for message in messages]
        self.position = self.written[-1] + 1

    def reached(self, offset: int) -> None:
        self.position = max(self.position, offset)


class Bucket:
    """The writers of some units."""

    pending_records = pending_bytes = unanswered = throttled_ms = 0

    def __init__(self, _: object, units: Sequence[CopyUnit], *__: object) -> None:
        self.writers = {unit.source: Writer(unit) for unit in units}

    def rewind(self) -> None:
        for writer in self.writers.values():
            writer.rewind()

    def await_answers(self, _: float) -> None:
        self.unanswered = 0


def record(partition: int, offset: int, error: KafkaError | None = None) -> Any:
    return SimpleNamespace(
        topic=lambda: SOURCE, partition=lambda: partition, offset=lambda: offset, error=lambda: error
    )


@pytest.fixture
def consumer() -> Consumer:
    return Consumer()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, consumer: Consumer) -> CopyWorker:
    """A worker that reads partition 0 from the middle and partition 1 from its start. Records of 0 expire."""
    return copying(monkeypatch, consumer, MOVE)


def copying(monkeypatch: pytest.MonkeyPatch, consumer: Consumer, move: Move) -> CopyWorker:
    rules = Rules({SOURCE: SourceRules(tombstone_ms=None, expires=True)}, {"green": 1})
    monkeypatch.setattr(copy_loop, "ClusterAdmin", lambda _: None)
    monkeypatch.setattr(copy_loop, "rules_of", lambda *_: rules)
    monkeypatch.setattr(copy_clients, "copy_consumer", lambda *_, **__: consumer)
    monkeypatch.setattr(copy_clients, "Bucket", Bucket)
    monkeypatch.setattr(copy_loop, "log_range", lambda *_: LogRange(7, 20))
    monkeypatch.setattr(CopyWorker, "_commit", lambda *_: None)
    nobody: Any = SimpleNamespace(copy_group="", green="green")
    worker = CopyWorker(nobody, nobody, units_of([move]))
    worker.writers[SOURCE, 0].position = POSITION
    return worker


def written(worker: CopyWorker, partition: int) -> list[int]:
    writer: Any = worker.writers[SOURCE, partition]
    return list(writer.written)


@pytest.mark.parametrize("code", [KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE])
def test_records_that_came_with_an_error_of_another_partition_are_not_read_again(
    worker: CopyWorker, consumer: Consumer, code: int
) -> None:
    consumer.polled = [record(1, 0), record(0, POSITION, KafkaError(code)), record(1, 1)]
    assert worker.step() == 2
    assert consumer.assigned == [{0: 7, 1: 2}]
    assert written(worker, 1) == [0, 1]


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._TRANSPORT])
def test_a_broker_that_is_away_or_does_not_know_the_topic_yet_does_not_end_a_copy(
    worker: CopyWorker, consumer: Consumer, code: int
) -> None:
    consumer.polled = [record(1, 0), record(0, POSITION, KafkaError(code)), record(1, 1)]
    assert worker.step() == 2
    assert consumer.assigned == []


@pytest.mark.parametrize(
    "error",
    [KafkaError(KafkaError._AUTO_OFFSET_RESET, TRUNCATED), KafkaError(KafkaError._LOG_TRUNCATION)],
    ids=["as told by auto.offset.reset=error", "by itself"],
)
def test_a_log_that_was_truncated_and_has_grown_again_is_not_read_on(
    worker: CopyWorker, consumer: Consumer, error: KafkaError
) -> None:
    consumer.polled = [record(0, POSITION, error)]
    with pytest.raises(UnsafeState, match="cut below the position 5 of its copy; expected a log that only grows"):
        worker.step()
    assert consumer.assigned == []


def test_nothing_more_is_taken_while_too_much_is_on_its_way(worker: CopyWorker, consumer: Consumer) -> None:
    consumer.polled = [record(1, 0)]
    bucket: Any = worker._clients.buckets[1]
    bucket.unanswered = 10**9
    assert worker.step() == 0
    assert written(worker, 1) == []
    assert worker.step() == 1
    assert written(worker, 1) == [0]


def polled_into_an_aborted_transaction(worker: CopyWorker, consumer: Consumer, aborted: int) -> None:
    """Let one poll return records of each partition.

    One of the partitions finds that its transaction was aborted.
    """
    consumer.polled = [record(p, worker.writers[SOURCE, p].position) for p in (0, 1, 2, 3)]
    writer: Any = worker.writers[SOURCE, aborted]
    writer.is_aborted = True
    worker.step()


@pytest.mark.parametrize("aborted", [1, 3])
def test_an_aborted_transaction_takes_back_all_partitions_of_its_producer_and_no_others(
    monkeypatch: pytest.MonkeyPatch, consumer: Consumer, aborted: int
) -> None:
    move = MOVE.model_copy(update={"source_partitions": 4, "producers": 2})
    worker = copying(monkeypatch, consumer, move)
    assert [[w.unit.partition for w in b.writers.values()] for b in worker._clients.buckets] == [[0, 2], [1, 3]]
    polled_into_an_aborted_transaction(worker, consumer, aborted)
    assert consumer.assigned == [{0: POSITION + 1, 1: 0, 2: 1, 3: 0}], "1 and 3 are read again from their commits"
    # The record of partition 3 comes after records that are taken back. So it was not written in either case.
    assert written(worker, 3) == []
    assert (written(worker, 0), written(worker, 2)) == ([POSITION], [0])
