"""While partitions and processors grow, every record of the input stays where it is (KIP-287, goal 4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.partitioning.linear_hashing import LinearHashing
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.processing.processors import expand_processors

from testbed.broker import EmbeddedBroker
from tests.support.processing.growing import INITIAL, Growing

pytestmark = pytest.mark.integration
T0 = 1_700_000_000_000

Written = tuple[int, int, bytes, bytes, int]
"""The partition, offset, key, value and timestamp of a record."""


@pytest.fixture
def live(broker: EmbeddedBroker, unique: str, tmp_path: Path) -> Growing:
    app = Growing(KafkaConnection(broker.client_config()), unique, tmp_path, inline=True)
    app.create()
    return app


def fields(message: Any) -> Written:
    return message.partition(), message.offset(), message.key(), message.value(), message.timestamp()[1]


def written(live: Growing, partitions: int, numbers: range) -> list[Written]:
    """Write numbered records, and return the place that the broker acknowledged for each."""
    acknowledged: list[Written] = []
    producer = Producer(live.connection.client(**{"linger.ms": 5, "enable.idempotence": True}))
    for number in numbers:
        key = b"d%d" % (number % 60)
        producer.produce(
            live.topic,
            b"%d" % number,
            key,
            LinearHashing(INITIAL).partition(key, partitions),
            timestamp=T0 + 10 * number,
            on_delivery=lambda error, message: acknowledged.append(fields(message)),
        )
    assert producer.flush(30) == 0
    return acknowledged


def test_topic_partition_and_offset_name_the_same_message_for_ever(live: Growing) -> None:
    acknowledged = written(live, 2, range(300))
    live.run()
    live.admin.grow_topic(live.topic, 8)
    acknowledged += written(live, 2, range(300, 400))
    live.run()
    acknowledged += written(live, 8, range(400, 700))
    live.run()
    expand_processors(live.application, live.connection, 4)
    for number in range(700, 1_200, 100):
        acknowledged += written(live, 8, range(number, number + 100))
        live.run()
    assert live.counts.count == 4

    assert sorted(map(fields, live.records(live.topic))) == sorted(acknowledged)
    assert set(live.admin.begin_offsets([live.topic])[live.topic].values()) == {0}, "nothing was deleted"
    ends = live.admin.end_offsets([live.topic])[live.topic]
    assert sum(ends.values()) == len(acknowledged) == 1_200, "nothing was copied into it"
    counts = {key: [value.partition(b":")[0] for value, *_ in its] for key, its in live.outputs().items()}
    assert counts == {b"d%d" % key: [b"%d" % n for n in range(1, 21)] for key in range(60)}, "each consumed once"
