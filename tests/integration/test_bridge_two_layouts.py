"""An input that was grown by hand: old partitions hold two layouts, which the bridge brings into one."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.journal import Captured, Journal, Phase
from kafka_rescale.core.plan import Move, MoveKind, Plan, Stage
from kafka_rescale.embedded.broker import EmbeddedBroker
from kafka_rescale.embedded.processes import wait_until
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.bridging import prepare
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.copy_units import units_of
from kafka_rescale.kafka.journal_follower import JournalFollower
from kafka_rescale.spark.bridge_tasks import CarryOn
from kafka_rescale.spark.copy_tasks import STOPPED

from tests.integration.copy_helpers import expected_partition, per_key, read
from tests.integration.spark_job_helpers import advance, begin

pytestmark = pytest.mark.integration

BEFORE, GROWN, AFTER = 3, 6, 9
KEYS = [b"key-%d" % i for i in range(120)]


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


def send(connection: KafkaConnection, topic: str, count: int, version: int) -> None:
    """Write a record of every key, placed by a producer that knows of ``count`` partitions."""
    producer = Producer(connection.client())
    for key in KEYS:
        producer.produce(topic, b"%d" % version, key, expected_partition("", key, count))
    assert producer.flush(30) == 0


def test_records_placed_with_either_count_arrive_once_and_in_the_order_of_each_key(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    move = Move(
        kind=MoveKind.INPUT,
        source=f"{unique}-orders",
        target=f"{unique}-orders-p{AFTER}",
        store=f"{unique}-orders",
        source_partitions=GROWN,
        target_partitions=AFTER,
        earlier_partitions=BEFORE,
    )
    plan = Plan(
        application=unique,
        generation=2,
        blue=unique,
        green=f"{unique}-g2",
        partitions=AFTER,
        stages=(Stage(index=1, name="stage_1_subtopology_0", subtopology=0, bridges=(move,)),),
        inputs=(),
    )
    admin = ClusterAdmin(connection)
    admin.ensure_topic(move.source, BEFORE, 1, {})
    admin.ensure_topic(move.target, AFTER, 1, {})
    for version in range(3):
        send(connection, move.source, BEFORE, version)
    admin.grow_topic(move.source, GROWN)
    for version in range(3, 6):
        send(connection, move.source, GROWN, version)
    control = begin(connection, plan)
    prepare(connection, plan, begun=False)
    fence = Captured(committed={move.source: dict.fromkeys(range(GROWN), 0)})
    ends = admin.end_offsets([move.source])
    advance(control, Phase.PROMOTED, captured=fence, input_ends=ends)

    carry = CarryOn(connection, plan, attempt=1, session="test")
    # The new partitions come first: they have to wait for the old ones, which another worker carries on.
    halves = [units_of([move])[BEFORE:], units_of([move])[:BEFORE]]
    verdicts: list[str] = []

    def work(half: int) -> None:
        with JournalFollower(connection, plan.application) as follower:
            verdicts.append(carry.work(halves[half], follower))

    threads = [threading.Thread(target=work, args=(half,), daemon=True) for half in range(2)]
    for thread in threads:
        thread.start()
    send(connection, move.source, GROWN, 6)
    wait_until(
        lambda: sum(map(len, read(connection, move.target).values())) >= 7 * len(KEYS),
        timeout=90,
        what="all records",
    )
    control.update(lambda _: {"journal": Journal(plan=plan.model_copy(update={"generation": 3}))})
    for thread in threads:
        thread.join(60)
    assert verdicts == [STOPPED, STOPPED]
    carried = per_key(read(connection, move.target))
    assert {key: [record.value for record in records] for key, records in carried.items()} == {
        key: [b"%d" % version for version in range(7)] for key in KEYS
    }
