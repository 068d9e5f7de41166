"""Records in flight and aborted transactions, of blue and of the copy: green may read committed or uncommitted.

A Kafka Streams application reads uncommitted with ``at_least_once``, and committed with ``exactly_once_v2``.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.failures import Rewound
from kafka_rescale.kafka.copy import in_flight
from kafka_rescale.kafka.copy.units import CopyUnit, units_of
from kafka_rescale.kafka.writing.producer import UnitProducer
from kafka_rescale.kafka.writing.settings import producer_settings
from kafka_rescale.spark.copy.tasks import FINISHED, Follow

from testbed.broker import EmbeddedBroker
from tests.integration.copy.test_copy_in_flight import captured_of, carry, records
from tests.integration.copy_helpers import create, per_key, plan_of, read, repartition, write

pytestmark = pytest.mark.integration


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


@pytest.fixture
def move(unique: str) -> Move:
    return repartition(unique, 2, 4)


@pytest.fixture
def plan(unique: str, move: Move) -> Plan:
    return plan_of(unique, move)


def killed_after_writing(connection: KafkaConnection, plan: Plan, unit: CopyUnit) -> Producer:
    """A writer that has left records in an open transaction.

    Keep the object: when it is collected, it may end cleanly.
    """
    producer = Producer(connection.client(**producer_settings(unit.transactional_id(plan.green), 1_000_000)))
    producer.init_transactions(30)
    producer.begin_transaction()
    for each in records(5):
        producer.produce(unit.move.target, each.value, each.key, 0, timestamp=each.timestamp)
    assert producer.flush(30) == 0
    return producer


def test_what_a_killed_attempt_has_taken_back_is_not_there_for_who_reads_uncommitted(
    connection: KafkaConnection, move: Move, plan: Plan
) -> None:
    create(connection, plan)
    write(connection, move, records(60))
    captured = captured_of(connection, move, {})
    carry(connection, plan, move, captured, 1, part=0)
    killed = killed_after_writing(connection, plan, units_of([move])[1])
    carry(connection, plan, move, captured, 1)
    assert per_key(read(connection, move.target, committed=False)) == per_key(read(connection, move.source))
    assert in_flight.prove(connection, move, captured.in_flight[move.source]) == 60
    with pytest.raises(KafkaException, match="fenced"):
        killed.commit_transaction(10)


def test_neither_is_what_a_worker_has_taken_back_itself(
    connection: KafkaConnection, move: Move, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(connection, plan)
    write(connection, move, records(60))
    captured = captured_of(connection, move, {})
    commit, aborted = UnitProducer.commit, []

    def broken_once(producer: UnitProducer, offsets: Sequence[TopicPartition], consumer: Consumer) -> None:
        if aborted or not producer._open:
            return commit(producer, offsets, consumer)
        assert producer._producer.flush(30) == 0
        producer.abort()
        aborted.append(producer)
        raise Rewound(Outage("a broker", found="nothing", expected="an answer", remedy="Run again."))

    monkeypatch.setattr(UnitProducer, "commit", broken_once)
    journals = [Journal(plan=plan), Journal(plan=plan, phase=Phase.QUIESCED, captured=captured)]
    follower: Any = SimpleNamespace(first=lambda: journals[0], latest=lambda: journals[1])
    assert Follow(connection, plan, 1, session="s").work(units_of([move]), follower) == FINISHED
    assert aborted
    assert per_key(read(connection, move.target, committed=False)) == per_key(read(connection, move.source))


def test_only_what_is_committed_is_carried_whoever_has_written_it(
    connection: KafkaConnection, move: Move, plan: Plan
) -> None:
    create(connection, plan)
    write(connection, move, records(20))
    write(connection, move, records(20, 1), transactional_id=f"{plan.blue}-a", abort=True)
    write(connection, move, records(20, 2), transactional_id=f"{plan.blue}-a")
    write(connection, move, records(20, 3), transactional_id=f"{plan.blue}-b", abort=True)
    captured = captured_of(connection, move, {})
    carry(connection, plan, move, captured, 1)
    moved = per_key(read(connection, move.target, committed=False))
    assert moved == per_key(read(connection, move.source))
    assert sum(map(len, moved.values())) == 40


def test_the_proof_sees_what_was_taken_back(connection: KafkaConnection, move: Move, plan: Plan) -> None:
    create(connection, plan)
    write(connection, move, records(60))
    captured = captured_of(connection, move, {})
    carry(connection, plan, move, captured, 1)
    killed_after_writing(connection, plan, units_of([move])[1]).abort_transaction(30)
    with pytest.raises(UnsafeState, match="records in flight"):
        in_flight.prove(connection, move, captured.in_flight[move.source])
