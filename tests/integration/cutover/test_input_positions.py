"""Partitions of an input need a position only if they have records that a read_committed reader would see."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.transactions import wait_until_complete
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.cutover import input_positions
from kafka_rescale.operations.cutover.input_positions import await_positions
from kafka_rescale.operations.cutover.quiesce import prove_gone
from kafka_rescale.operations.expansion.rescale import Rescale

from tests.support.small_application import application, topic_configs

pytestmark = pytest.mark.integration

PARTITION = 2
"""The partition without a position."""


@pytest.fixture
def connection(client: dict[str, str]) -> KafkaConnection:
    return KafkaConnection(client)


@pytest.fixture
def rescale(connection: KafkaConnection, unique: str) -> Rescale:
    """An application that has read its inputs up to an aborted transaction.

    One partition has only that transaction.
    """
    admin, topic = ClusterAdmin(connection), f"{unique}-customers"
    for name, configs in topic_configs(unique).items():
        admin.ensure_topic(name, 4, 1, configs)
    write(connection, topic, [0, 1, 3])
    ends = admin.end_offsets([topic])[topic]
    admin.commit(unique, {topic: {p: end for p, end in ends.items() if p != PARTITION}})
    producer = Producer(connection.client(**{"transactional.id": unique}))
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"v", b"k", PARTITION)
    assert producer.flush(30) == 0
    producer.abort_transaction(30)
    # Until the abort marker is written, the end is before it.
    wait_until_complete(admin, [topic], seconds=30)
    return Rescale.open(application(unique), connection, "shell/test")


def write(connection: KafkaConnection, topic: str, partitions: list[int]) -> None:
    producer = Producer(connection.client())
    for p in partitions:
        producer.produce(topic, b"v", b"k", p)
    assert producer.flush(30) == 0


def plan(name: str) -> Plan:
    declared = application(name)
    counts = dict.fromkeys(topic_configs(name), 4)
    return build_plan(declared, topology_of(declared), blue=name, generation=2, current=counts, target=8)


def stopped(monkeypatch: pytest.MonkeyPatch, rescale: Rescale) -> None:
    monkeypatch.setattr(type(rescale.lifecycle), "is_running", lambda *_: False)


def test_an_aborted_transaction_needs_no_position(
    rescale: Rescale, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_positions, "COMMIT_SECONDS", 0)
    topic = f"{unique}-customers"
    assert rescale.admin.end_offsets([topic])[topic][PARTITION] == 2, "a record and a marker"
    await_positions(rescale, plan(unique))
    stopped(monkeypatch, rescale)
    captured = prove_gone(rescale, plan(unique), seconds=30)
    assert captured.committed[topic][PARTITION] == 0


def test_a_committed_record_behind_it_does(
    rescale: Rescale, connection: KafkaConnection, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_positions, "COMMIT_SECONDS", 0)
    write(connection, f"{unique}-customers", [PARTITION])
    unread = rf"input {unique}-customers: found records but no committed offset in partitions \[{PARTITION}\]"
    with pytest.raises(UnsafeState, match=unread):
        await_positions(rescale, plan(unique))
    stopped(monkeypatch, rescale)
    with pytest.raises(UnsafeState, match=unread):
        prove_gone(rescale, plan(unique), seconds=30)
