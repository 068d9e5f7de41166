"""An input that a person has grown: old partitions hold two layouts, and the bridge merges them into one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.journal import Captured, Journal, Phase
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan, Stage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy.bridging import prepare
from kafka_rescale.kafka.copy.units import CopyUnit, units_of
from kafka_rescale.spark.copy.bridge_tasks import CarryOn
from kafka_rescale.spark.copy.tasks import STOPPED

from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.integration.copy_helpers import expected_partition, per_key, read
from tests.integration.spark_job_helpers import advance, begin

pytestmark = pytest.mark.integration

BEFORE, GROWN, AFTER = 3, 6, 9
KEYS = [b"key-%d" % i for i in range(120)]


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


def send(connection: KafkaConnection, topic: str, count: int, version: int) -> None:
    """Write a record of every key, placed by a producer that knows ``count`` partitions."""
    producer = Producer(connection.client())
    for key in KEYS:
        producer.produce(topic, b"%d" % version, key, expected_partition("", key, count))
    assert producer.flush(30) == 0


def bridged(unique: str, source: int, earlier: int) -> tuple[Move, Plan]:
    move = Move(
        kind=MoveKind.INPUT,
        source=f"{unique}-orders",
        target=f"{unique}-orders-p{AFTER}",
        store=f"{unique}-orders",
        source_partitions=source,
        target_partitions=AFTER,
        earlier_partitions=earlier,
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
    return move, plan


@contextmanager
def at_work(carry: CarryOn, lists: list[list[CopyUnit]], control: ControlTopic) -> Iterator[None]:
    """Run a worker of a bridge for each list. At the end of the block, another expansion ends them."""
    verdicts: list[str] = []

    def work(units: list[CopyUnit]) -> None:
        with JournalFollower(carry.connection, carry.plan.application) as follower:
            verdicts.append(carry.work(units, follower))

    threads = [threading.Thread(target=work, args=(units,), daemon=True) for units in lists]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        other = Journal(plan=carry.plan.model_copy(update={"generation": 3}))
        control.update(lambda _: {"journal": other})
        for thread in threads:
            thread.join(60)
    assert verdicts == [STOPPED] * len(lists)


def wait_for_records(connection: KafkaConnection, topic: str, versions: int) -> None:
    """Wait until so many records of every key have arrived."""
    wait_until(
        lambda: sum(map(len, read(connection, topic).values())) >= versions * len(KEYS),
        timeout=90,
        what="all records",
    )


def test_records_placed_with_either_count_arrive_once_and_in_the_order_of_each_key(
    connection: KafkaConnection, unique: str
) -> None:
    move, plan = bridged(unique, GROWN, BEFORE)
    admin = ClusterAdmin(connection)
    admin.ensure_topic(move.source, BEFORE, 1, {})
    admin.ensure_topic(move.target, AFTER, 1, {})
    for version in range(3):
        send(connection, move.source, BEFORE, version)
    admin.grow_topic(move.source, GROWN)
    for version in range(3, 6):
        send(connection, move.source, GROWN, version)
    control = begin(connection, plan)
    prepare(connection, plan, Bridge(plan=plan.fingerprint))
    fence = Captured(committed={move.source: dict.fromkeys(range(GROWN), 0)})
    ends = admin.end_offsets([move.source])
    advance(control, Phase.PROMOTED, captured=fence, input_ends=ends)

    # The worker of the new partitions starts first. It has to wait for the old ones, which the other one carries.
    halves = [units_of([move])[BEFORE:], units_of([move])[:BEFORE]]
    with at_work(CarryOn(connection, plan, attempt=1, session="test"), halves, control):
        send(connection, move.source, GROWN, 6)
        wait_for_records(connection, move.target, 7)
    carried = per_key(read(connection, move.target))
    assert {key: [record.value for record in records] for key, records in carried.items()} == {
        key: [b"%d" % version for version in range(7)] for key in KEYS
    }


def test_what_was_written_before_a_growth_was_noticed_comes_before_all_that_lies_in_new_partitions(
    connection: KafkaConnection, unique: str
) -> None:
    """The input grows twice while the bridge stands still. Stale producers go on by the first count."""
    move, plan = bridged(unique, BEFORE, 0)
    admin = ClusterAdmin(connection)
    admin.ensure_topic(move.source, BEFORE, 1, {})
    admin.ensure_topic(move.target, AFTER, 1, {})
    control = begin(connection, plan)
    fence = Captured(committed={move.source: dict.fromkeys(range(BEFORE), 0)})
    advance(control, Phase.PROMOTED, captured=fence)
    known = Bridge(plan=plan.fingerprint)
    prepare(connection, plan, known)
    known = known.with_positions({})
    version = 0
    for count in (BEFORE, GROWN, 2 * GROWN):
        if count > BEFORE:
            admin.grow_topic(move.source, count)
            known = known.noticed(plan.bridges, admin.end_offsets([move.source], read_committed=False))
        for _ in range(3):
            send(connection, move.source, count, version)
            version += 1
    prepare(connection, plan, known)
    units = units_of(known.widened(plan.bridges))
    carry = CarryOn(connection, plan, attempt=1, session="test", added=known.added)
    with at_work(carry, [units[BEFORE:], units[:BEFORE]], control):
        wait_for_records(connection, move.target, version)
        send(connection, move.source, BEFORE, version)
        wait_for_records(connection, move.target, version + 1)
    carried = per_key(read(connection, move.target))
    assert {key: [record.value for record in records] for key, records in carried.items()} == {
        key: [b"%d" % each for each in range(version + 1)] for key in KEYS
    }


def test_a_key_that_has_gone_from_one_old_partition_to_another_stops_the_bridge(
    connection: KafkaConnection, unique: str
) -> None:
    move, plan = bridged(unique, BEFORE, 0)
    admin = ClusterAdmin(connection)
    admin.ensure_topic(move.source, BEFORE, 1, {})
    admin.ensure_topic(move.target, AFTER, 1, {})
    control = begin(connection, plan)
    fence = Captured(committed={move.source: dict.fromkeys(range(BEFORE), 0)})
    advance(control, Phase.PROMOTED, captured=fence)
    admin.grow_topic(move.source, BEFORE + 1)
    send(connection, move.source, BEFORE + 1, 0)
    ends = admin.end_offsets([move.source], read_committed=False)
    known = Bridge(plan=plan.fingerprint).noticed(plan.bridges, ends)
    prepare(connection, plan, known)
    carry = CarryOn(connection, plan, attempt=1, session="test", added=known.added)
    with (
        JournalFollower(connection, plan.application) as follower,
        pytest.raises(UnsafeState, match="reset-offsets"),
    ):
        carry.work(units_of(known.widened(plan.bridges)), follower)
