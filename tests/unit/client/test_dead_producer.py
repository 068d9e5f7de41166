"""A producer that an outage has ended is replaced; one that was fenced never is.

A stand-in for the client library's producer: its fatal error needs a frozen coordinator that comes back at the
right moment, as in one of the runs of ``test_broker_faults.py``.
"""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka_rescale.core.errors import ClusterOutage, Fenced
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.writing import transactional_writer
from kafka_rescale.kafka.writing.transactional_writer import TransactionalWriter

CONNECTION = KafkaConnection({"bootstrap.servers": "kafka:9092"})
TIMED_OUT = KafkaError(KafkaError._TIMED_OUT, "no answer", retriable=False, txn_requires_abort=True)
ENDED = KafkaError(KafkaError.INVALID_TXN_STATE, "Failed to end transaction", fatal=True)
TAKEN = KafkaError(KafkaError._FENCED, "a newer producer", fatal=True)


class Endable:
    """Commits until it is told what to fail with; a fatal error is its last word."""

    made: list[Endable]
    on_commit: KafkaError | None = None
    on_abort: KafkaError | None = None

    def __init__(self, _: Any) -> None:
        self.dead_of: KafkaError | None = None
        self.committed: list[str] = []
        Endable.made.append(self)

    def init_transactions(self, _: float) -> None: ...

    def poll(self, _: float) -> int:
        return 0

    def begin_transaction(self) -> None:
        self._fail(self.dead_of)

    def produce(self, topic: str, value: Any, key: str, partition: int, *, on_delivery: Any) -> None:
        self.committed.append(key)

    def commit_transaction(self, _: float) -> None:
        self._fail(Endable.on_commit)

    def abort_transaction(self, _: float) -> None:
        self._fail(Endable.on_abort)

    def _fail(self, error: KafkaError | None) -> None:
        if error is not None:
            self.dead_of = error if error.fatal() else self.dead_of
            raise KafkaException(error)


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> TransactionalWriter:
    monkeypatch.setattr(transactional_writer, "Producer", Endable)
    Endable.made, Endable.on_commit, Endable.on_abort = [], None, None
    return TransactionalWriter(CONNECTION, "job")


def test_a_producer_whose_transaction_has_ended_unseen_is_replaced(writer: TransactionalWriter) -> None:
    Endable.on_commit, Endable.on_abort = TIMED_OUT, ENDED
    with pytest.raises(ClusterOutage):
        writer.write("topic", {"first": b""})
    Endable.on_commit = Endable.on_abort = None
    writer.write("topic", {"second": b""})
    assert [each.committed for each in Endable.made] == [["first"], ["second"]]


def test_a_producer_that_was_fenced_is_not_replaced(writer: TransactionalWriter) -> None:
    Endable.on_commit = TAKEN
    for _ in range(2):
        with pytest.raises(Fenced):
            writer.write("topic", {"first": b""})
    assert len(Endable.made) == 1
