"""Listings by one request for each leader are those of librdkafka, or there is none."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from kafka_rescale.kafka.admin import offset_lists, offsets
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.offset_lists import OffsetLists
from kafka_rescale.kafka.client.connection import KafkaConnection

pytestmark = pytest.mark.integration


def test_they_are_the_same_as_those_of_librdkafka(
    client: dict[str, str], unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin, topics = ClusterAdmin(KafkaConnection(client)), [f"{unique}-a", f"{unique}-b"]
    for topic, count in zip(topics, (3, 40), strict=True):
        admin.ensure_topic(topic, count, 1, {})
    producer = Producer({**client, "transactional.id": unique})
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(30):
        producer.produce(topics[1], b"value", partition=number)
    producer.commit_transaction()
    admin.delete_records({topics[1]: {5: 1}})
    # A transaction that is open: its records are below the end, but not for a `read_committed` reader.
    producer.begin_transaction()
    producer.produce(topics[0], b"value", partition=2)
    assert producer.flush(20) == 0
    expected = (
        admin.begin_offsets(topics),
        admin.end_offsets(topics),
        admin.end_offsets(topics, read_committed=False),
    )
    assert expected[0][topics[1]][5] == 1
    assert (expected[1][topics[0]][2], expected[2][topics[0]][2]) == (0, 1)

    lists, connection = OffsetLists(), KafkaConnection(client)
    found = (
        lists.ask(connection, topics, offsets.EARLIEST, read_committed=False),
        lists.ask(connection, topics, offsets.LATEST, read_committed=True),
        lists.ask(connection, topics, offsets.LATEST, read_committed=False),
    )
    assert found == expected
    assert [list(of.items()) for of in expected] == [list(of.items()) for of in found if of]

    # After a listing of many partitions, that is how the same connection is asked.
    monkeypatch.setattr(offsets, "MANY_PARTITIONS", 40)
    ClusterAdmin(admin.connection).end_offsets(topics)
    monkeypatch.setattr(admin, "_answers", lambda *_: pytest.fail("librdkafka was asked"))
    assert admin.begin_offsets(topics) == expected[0]
    assert admin.end_offsets(topics) == expected[1]
    assert admin.end_offsets(topics, read_committed=False) == expected[2]
    producer.abort_transaction()


def test_without_a_complete_answer_there_is_none_and_it_rests(
    client: dict[str, str], unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = ClusterAdmin(KafkaConnection(client))
    admin.ensure_topic(unique, 2, 1, {})
    lists, connection = OffsetLists(), KafkaConnection(client)
    assert lists.ask(connection, [unique, f"{unique}-absent"], offsets.LATEST, read_committed=True) is None
    assert lists.ask(connection, [unique], offsets.LATEST, read_committed=True) is None, "it rests"
    lists._rests_until = 0.0
    assert lists.ask(connection, [unique], offsets.LATEST, read_committed=True) == {unique: {0: 0, 1: 0}}

    nobody = KafkaConnection({"bootstrap.servers": "127.0.0.1:1"})
    monkeypatch.setattr(offset_lists, "SECONDS", 0.5)
    assert OffsetLists().ask(nobody, [unique], offsets.LATEST, read_committed=True) is None
