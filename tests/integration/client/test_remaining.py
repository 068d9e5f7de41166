"""Within the pause, one consumer finds whether records are left in many partitions that all end with markers."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading import remaining
from kafka_rescale.kafka.reading.remaining import with_records

pytestmark = pytest.mark.integration


def ended_with_markers(client: Mapping[str, str], topic: str, partitions: int) -> None:
    """Make a topic. Each of its partitions has a committed record and an aborted record."""
    admin = AdminClient(dict(client))
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)
    producer = Producer({**client, "transactional.id": topic})
    producer.init_transactions(60)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for partition in range(partitions):
            producer.produce(topic, b"record", partition=partition)
        producer.flush(60)
        end(60)


def test_many_partitions_take_little_longer_than_few(
    client: Mapping[str, str], unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Consumer] = []

    def counted(settings: Mapping[str, object]) -> Consumer:
        made.append(Consumer(dict(settings)))
        return made[-1]

    monkeypatch.setattr(remaining, "Consumer", counted)
    connection, seconds = KafkaConnection(dict(client)), dict[int, float]()
    for partitions in (8, 128):
        topic = f"{unique}-{partitions}"
        ended_with_markers(client, topic, partitions)
        processed = {(topic, p): (1, 4) for p in range(partitions)}
        taken = []
        for _ in range(3):
            began = time.monotonic()
            assert list(with_records(connection, processed)) == []
            taken.append(time.monotonic() - began)
        seconds[partitions] = min(taken)
    print(f"8 partitions: {seconds[8]:.2f} s, 128 partitions: {seconds[128]:.2f} s")
    assert len(made) == 6
    # If partitions were read one after the other, it would take 16 times as long.
    assert seconds[128] < 5 * seconds[8]


def test_only_partitions_with_a_committed_record_in_their_range_are_found(
    client: Mapping[str, str], unique: str
) -> None:
    ended_with_markers(client, unique, 6)
    connection = KafkaConnection(dict(client))
    ranges = {
        (unique, 0): (0, 4),
        (unique, 1): (None, 4),
        (unique, 2): (1, 4),
        (unique, 3): (4, 4),
        (unique, 4): (None, 0),
        (unique, 5): (0, 1),
    }
    assert sorted(with_records(connection, ranges)) == [(unique, 0), (unique, 1), (unique, 5)]
    assert list(with_records(connection, {})) == []


def test_a_partition_with_much_to_read_does_not_hide_the_others(client: Mapping[str, str], unique: str) -> None:
    ended_with_markers(client, unique, 4)
    producer = Producer(dict(client))
    for _ in range(50_000):
        producer.produce(unique, b"x" * 200, partition=0)
        producer.poll(0)
    producer.flush(60)
    consumer = Consumer({**client, "group.id": unique})
    end = consumer.get_watermark_offsets(TopicPartition(unique, 0), timeout=60)[1]
    consumer.close()
    connection = KafkaConnection(dict(client))
    ranges: remaining.Ranges = {
        (unique, 0): (0, end),
        (unique, 1): (1, 4),
        (unique, 2): (0, 4),
        (unique, 3): (1, 4),
    }
    assert sorted(with_records(connection, ranges)) == [(unique, 0), (unique, 2)]
