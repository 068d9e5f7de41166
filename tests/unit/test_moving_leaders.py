"""What a broker answers while a partition's leader moves goes away by itself."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.kafka.failures import typed


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.OFFSET_NOT_AVAILABLE,
    ],
)
def test_a_moving_leader_is_an_outage_that_is_retried(code: int) -> None:
    assert isinstance(typed(KafkaError(code), "offsets"), Outage)


def test_a_refusal_is_not() -> None:
    assert isinstance(typed(KafkaError(KafkaError.INVALID_PARTITIONS), "offsets"), UnsafeState)
