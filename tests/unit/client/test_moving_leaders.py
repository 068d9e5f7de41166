"""Errors that a broker answers while a partition's leader moves or is new: they are retried until they go away."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.kafka.admin.offsets import OffsetAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.failures import to_error


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.OFFSET_NOT_AVAILABLE,
        # A broker that does not know yet that the topic has grown.
        KafkaError._UNKNOWN_PARTITION,
    ],
)
def test_a_moving_leader_is_an_outage_that_is_retried(code: int) -> None:
    assert isinstance(to_error(KafkaError(code), "offsets"), Outage)


def test_a_refusal_is_not() -> None:
    assert isinstance(to_error(KafkaError(KafkaError.INVALID_PARTITIONS), "offsets"), UnsafeState)


class Restarting(OffsetAdmin):
    """A broker that comes back. Its first answers have neither an offset nor an error."""

    def __init__(self, *offsets: int) -> None:
        super().__init__(KafkaConnection({"bootstrap.servers": "127.0.0.1:1"}))
        self.answers = list(offsets)

    def partition_counts(self, names: Iterable[str]) -> dict[str, int]:
        return dict.fromkeys(names, 1)

    def _read(self, ask: Any, what: str, again: Any = ()) -> dict[Any, Any]:
        offset = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return {TopicPartition("control", 0): SimpleNamespace(offset=offset)}


def test_an_answer_without_an_offset_is_no_empty_log() -> None:
    assert Restarting(-1001, -1001, 708).end_offsets(["control"]) == {"control": {0: 708}}


def test_a_broker_that_never_knows_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_rescale.kafka.admin.offsets.SETTLE_SECONDS", 0)
    with pytest.raises(Outage, match="control-0: found an answer without an offset"):
        Restarting(-1001).end_offsets(["control"])
