"""A producer that does not know of the growth is caught: before the promotion, and after it."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.journal import Captured, Journal, Phase
from kafka_rescale.core.misrouted import refuse_misrouted
from kafka_rescale.core.planning import build_plan
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.misrouted import look_for_misrouted
from kafka_rescale.operations.load import topology_of
from kafka_rescale.operations.quiesce import assert_held
from kafka_rescale.operations.rescale import Rescale

from tests.support.ordered import IGNORANT
from tests.support.small_application import application, topic_configs

pytestmark = pytest.mark.integration


@pytest.fixture
def connection(client: dict[str, str]) -> KafkaConnection:
    return KafkaConnection(client)


def journal_of(connection: KafkaConnection, name: str, fence: dict[int, int]) -> Journal:
    """An expansion from 4 to 8 whose paused input is ``<name>-customers``."""
    declared = application(name)
    counts = dict.fromkeys(topic_configs(name), 4)
    plan = build_plan(declared, topology_of(declared), blue=name, generation=2, current=counts, target=8)
    topic = f"{name}-customers"
    return Journal(
        plan=plan,
        phase=Phase.STARTED,
        captured=Captured(committed={topic: fence}),
        green_start={topic: {p: fence.get(p, 0) for p in range(8)}},
    )


def send(producer: Producer, topic: str, count: int) -> None:
    for number in range(count):
        producer.produce(topic, b"v", b"customer-%d" % number)
    assert producer.flush(30) == 0


def test_a_producer_with_old_metadata_is_caught_after_the_growth(connection: KafkaConnection, unique: str) -> None:
    admin, topic = ClusterAdmin(connection), f"{unique}-customers"
    admin.ensure_topic(topic, 4, 1, {})
    stale = Producer(connection.client(**IGNORANT))
    send(stale, topic, 100)
    journal = journal_of(connection, unique, admin.end_offsets([topic])[topic])
    admin.grow_topic(topic, 8)
    fresh = Producer(connection.client(partitioner="murmur2_random"))
    send(fresh, topic, 200)
    (sound,) = look_for_misrouted(connection, journal)
    assert (sound.records, sound.misrouted) == (200, 0)

    send(stale, topic, 200)
    (report,) = look_for_misrouted(connection, journal)
    assert report.records == 400
    assert report.misrouted > 50
    with pytest.raises(UnsafeState, match="in partitions of the old count"):
        refuse_misrouted([report])


def test_a_producer_that_was_not_held_stops_the_cutover(connection: KafkaConnection, unique: str) -> None:
    admin, topic = ClusterAdmin(connection), f"{unique}-customers"
    admin.ensure_topic(topic, 4, 1, {})
    producer = Producer(connection.client(**IGNORANT))
    send(producer, topic, 20)
    journal = journal_of(connection, unique, admin.end_offsets([topic])[topic])
    rescale = Rescale.open(application(unique), connection, "shell/test")
    assert_held(rescale, journal)
    send(producer, topic, 1)
    with pytest.raises(UnsafeState, match="a record behind the fence"):
        assert_held(rescale, journal)
