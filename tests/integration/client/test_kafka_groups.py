"""Groups and offsets on a real broker: members that are gone but still counted, offsets in open transactions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import poll_until

from tests.support.group_member import group_member

pytestmark = pytest.mark.integration


@pytest.fixture
def connection(client: dict[str, str]) -> KafkaConnection:
    return KafkaConnection(client)


@pytest.fixture
def admin(connection: KafkaConnection) -> ClusterAdmin:
    return ClusterAdmin(connection)


@pytest.fixture
def topic(admin: ClusterAdmin, unique: str) -> str:
    admin.ensure_topic(unique, 2, 1, {})
    return unique


@pytest.mark.parametrize(
    "membership",
    [
        {"session.timeout.ms": "1800000", "max.poll.interval.ms": "1800000"},
        {"session.timeout.ms": "1800000", "max.poll.interval.ms": "1800000", "group.instance.id": "pod-0"},
        {"group.protocol": "consumer"},
    ],
    ids=["dynamic", "static", "consumer protocol"],
)
def test_a_killed_member_is_removed_without_waiting_for_its_session(
    admin: ClusterAdmin, client: dict[str, str], topic: str, membership: dict[str, str]
) -> None:
    with group_member({**client, **membership}, topic, topic) as process:
        process.kill()
        process.wait()
        assert admin.describe_group(topic).is_live, "the coordinator can't know yet"

        assert admin.remove_members(topic) == ()

        found = admin.describe_group(topic)
        assert (found.state, found.members) == ("Empty", ())


def test_removing_members_of_a_group_that_does_not_exist_does_nothing(admin: ClusterAdmin, unique: str) -> None:
    assert admin.remove_members(unique) == ()
    assert admin.describe_group(unique).state == "Dead"


def test_members_that_stay_after_all_are_returned(
    admin: ClusterAdmin, client: dict[str, str], topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with group_member(client, topic, topic):
        monkeypatch.setattr("kafka_rescale.kafka.admin.group_members.leave_group", lambda *_: None)
        assert admin.remove_members(topic) == admin.describe_group(topic).members != ()


def test_offsets_of_a_group_with_members_are_not_overwritten(
    admin: ClusterAdmin, client: dict[str, str], topic: str
) -> None:
    with group_member(client, topic, topic):
        with pytest.raises(UnsafeState, match="live members"):
            admin.commit(topic, {topic: {0: 0, 1: 0}})
        with pytest.raises(UnsafeState, match="live members"):
            admin.delete_group(topic)


def test_offsets_are_committed_and_read_back(admin: ClusterAdmin, topic: str, unique: str) -> None:
    admin.commit(unique, {topic: {0: 0, 1: 7}})
    admin.commit(unique, {topic: {1: 8}})
    assert admin.committed(unique) == {topic: {0: 0, 1: 8}}
    admin.delete_group(unique)
    admin.delete_group(unique)
    assert admin.committed(unique) == {}


def test_committing_for_a_partition_that_does_not_exist_is_an_error(
    admin: ClusterAdmin, topic: str, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks like a partition that was just added, so the coordinator first gets some time to learn of it."""
    monkeypatch.setattr("kafka_rescale.kafka.admin.group_members.SETTLE_SECONDS", 1)
    with pytest.raises(Outage, match=f"{topic}-9: found UnknownTopicOrPartitionError"):
        admin.commit(unique, {topic: {0: 3, 9: 0}})
    assert admin.committed(unique) == {topic: {0: 3}}


def test_committed_waits_for_the_offsets_of_an_open_transaction(
    admin: ClusterAdmin, connection: KafkaConnection, topic: str, unique: str
) -> None:
    admin.commit(unique, {topic: {0: 1}})
    with offset_in_a_transaction(connection, topic, unique):
        # The broker aborts the transaction after its timeout. Only then is the offset known: it is the old one.
        assert admin.committed(unique) == {topic: {0: 1}}


def test_the_very_first_commit_is_waited_for_where_the_partition_is_asked_for(
    admin: ClusterAdmin, connection: KafkaConnection, topic: str, unique: str
) -> None:
    with offset_in_a_transaction(connection, topic, unique) as producer:
        assert admin.committed(unique) == {}, "brokers leave it out, so that nothing seems to have been committed"
        committing = threading.Timer(0.5, producer.commit_transaction, [20])
        committing.start()
        assert admin.committed(unique, {topic: 2}) == {topic: {0: 5}}
        committing.join()


@contextmanager
def offset_in_a_transaction(connection: KafkaConnection, topic: str, group: str) -> Iterator[Producer]:
    """Send offset 5 of partition 0 to a transaction, and leave the transaction open."""
    producer = Producer(
        connection.client(**{"transactional.id": group, "transaction.timeout.ms": 3000, "socket.timeout.ms": 3000})
    )
    consumer = Consumer(connection.client(**{"group.id": group}))
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, b"v", b"k", 0)
    metadata = consumer.consumer_group_metadata()
    producer.send_offsets_to_transaction([TopicPartition(topic, 0, 5)], metadata, 20)
    yield producer
    consumer.close()


def test_ends_are_those_of_a_read_committed_reader(
    admin: ClusterAdmin, connection: KafkaConnection, topic: str, unique: str
) -> None:
    producer = Producer(connection.client(**{"transactional.id": unique}))
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, b"v", b"k", 1)
    producer.flush(20)
    assert admin.end_offsets([topic, "absent"], if_present=True) == {topic: {0: 0, 1: 0}}
    assert admin.end_offsets([topic], read_committed=False) == {topic: {0: 0, 1: 1}}
    producer.commit_transaction(20)
    poll_until(
        lambda: admin.end_offsets([topic]) == {topic: {0: 0, 1: 2}},
        seconds=20,
        otherwise=lambda: UnsafeState("end", found="no marker", expected="record and marker", remedy=""),
    )
