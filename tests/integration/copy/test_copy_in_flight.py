"""Records in flight: the captured range is moved once per attempt, and the proof of that can fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from kafka_rescale.core.control.journal import Captured, Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.errors import Fenced, UnsafeState
from kafka_rescale.core.formats.subscription_wrapper import LeftTable
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.copy import in_flight
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.units import units_of

from testbed.broker import EmbeddedBroker
from tests.integration.copy_helpers import (
    T0,
    Record,
    create,
    expected_partition,
    java_murmur2,
    killed_within_commit,
    per_key,
    plan_of,
    read,
    repartition,
    write,
)

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


def records(count: int, version: int = 0) -> list[Record]:
    return [
        Record(b"k%d" % (i % 7), b"%d/%d" % (version, i), T0 + i, (("c", b"mine"),) if i % 2 else ())
        for i in range(count)
    ]


def captured_of(connection: KafkaConnection, move: Move, starts: dict[int, int]) -> Captured:
    ends = ClusterAdmin(connection).end_offsets([move.source])[move.source]
    return Captured(in_flight={move.source: {p: (starts.get(p, 0), end) for p, end in ends.items()}})


def carry(
    connection: KafkaConnection, plan: Plan, move: Move, captured: Captured, attempt: int, part: int | None = None
) -> None:
    """Do what catch_up does. With ``part``, do it only for one partition, as if catch_up was killed after it."""
    in_flight.prepare(connection, plan, [move], attempt)
    units = [u for u in units_of([move]) if part in {None, u.partition}]
    worker = CopyWorker(connection, plan, units)
    try:
        starts, ends = in_flight.starts_and_ends(captured, worker.writers)
        worker.begin(starts)
        worker.run_to(ends, now_ms(), exactly=True)
    finally:
        worker.close()


def test_exactly_the_captured_range_is_moved(connection: KafkaConnection, move: Move, plan: Plan) -> None:
    create(connection, plan)
    write(connection, move, records(60))
    captured = captured_of(connection, move, {0: 10, 1: 5})
    write(connection, move, [Record(b"k1", b"behind the end")])

    carry(connection, plan, move, captured, 1)

    ranges = captured.in_flight[move.source]
    expected = {p: rs[slice(*ranges[p])] for p, rs in read(connection, move.source).items()}
    assert per_key(read(connection, move.target)) == per_key(expected)
    assert in_flight.prove(connection, move, ranges) == 45


def test_an_attempt_that_was_killed_half_way_goes_on(connection: KafkaConnection, move: Move, plan: Plan) -> None:
    create(connection, plan)
    write(connection, move, records(60))
    captured = captured_of(connection, move, {0: 3})
    carry(connection, plan, move, captured, 1, part=0)
    carry(connection, plan, move, captured, 1)
    assert in_flight.prove(connection, move, captured.in_flight[move.source]) == 57


def test_a_writer_that_was_killed_within_its_commit_is_not_waited_for(
    connection: KafkaConnection, move: Move, plan: Plan
) -> None:
    create(connection, plan)
    write(connection, move, records(60))
    captured = captured_of(connection, move, {0: 3})
    carry(connection, plan, move, captured, 1, part=0)
    killed = killed_within_commit(connection, plan, units_of([move])[0], plan.copy_group)
    carry(connection, plan, move, captured, 1)
    assert in_flight.prove(connection, move, captured.in_flight[move.source]) == 57
    with pytest.raises(KafkaException, match="fenced"):
        killed.commit_transaction(10)


def test_another_attempt_begins_with_an_empty_target(connection: KafkaConnection, move: Move, plan: Plan) -> None:
    create(connection, plan)
    write(connection, move, records(60))
    carry(connection, plan, move, captured_of(connection, move, {}), 1)
    write(connection, move, records(20, 1))
    second = captured_of(connection, move, {0: 30, 1: 20})
    carry(connection, plan, move, second, 2)
    assert in_flight.prove(connection, move, second.in_flight[move.source]) == 30


def test_an_older_attempt_that_wakes_up_late_leaves_what_a_newer_one_has_moved(
    connection: KafkaConnection, move: Move, plan: Plan
) -> None:
    create(connection, plan)
    write(connection, move, records(60))
    captured = captured_of(connection, move, {0: 10, 1: 5})
    carry(connection, plan, move, captured_of(connection, move, {}), 1)
    carry(connection, plan, move, captured, 2)
    with pytest.raises(Fenced, match="records of attempt 2"):
        in_flight.prepare(connection, plan, [move], 1)
    assert in_flight.prove(connection, move, captured.in_flight[move.source]) == 45


@pytest.mark.parametrize(
    "change",
    [
        {"phase": Phase.CAUGHT_UP},
        {"phase": Phase.STARTED},
        {"attempt": 2},
        {"plan": {"partitions": 5}},
    ],
    ids=str,
)
def test_what_the_journal_says_is_of_somebody_else_is_not_emptied(
    connection: KafkaConnection, move: Move, plan: Plan, change: dict[str, Any]
) -> None:
    create(connection, plan)
    write(connection, move, records(60))
    captured = captured_of(connection, move, {})
    carry(connection, plan, move, captured, 1)
    # A green that runs writes to its topic, so it has more records than were moved.
    producer = Producer(connection.client())
    producer.produce(move.target, b"green's own", b"k", 0)
    producer.flush()
    known = Journal(plan=plan.model_copy(update=change.pop("plan", {})), **change)
    ControlTopic(connection, plan.application).update(lambda _: {Concern.JOURNAL: known})
    with pytest.raises(Fenced, match="expected attempt 1 of this expansion, before its copies are whole"):
        in_flight.prepare(connection, plan, [move], 1)
    assert sum(map(len, read(connection, move.target).values())) == 61


def test_nothing_in_flight_leaves_an_empty_target(connection: KafkaConnection, move: Move, plan: Plan) -> None:
    create(connection, plan)
    write(connection, move, records(60))
    ends = ClusterAdmin(connection).end_offsets([move.source])[move.source]
    captured = captured_of(connection, move, ends)
    carry(connection, plan, move, captured, 1)
    assert in_flight.prove(connection, move, captured.in_flight[move.source]) == 0
    assert not any(read(connection, move.target).values())


def test_a_target_that_was_never_prepared_is_not_filled(
    connection: KafkaConnection, move: Move, plan: Plan
) -> None:
    create(connection, plan)
    write(connection, move, records(10))
    worker = CopyWorker(connection, plan, units_of([move]))
    with pytest.raises(UnsafeState, match="no position"):
        worker.begin({u.source: 0 for u in units_of([move])})
    worker.close()


def swapped(found: list[Record]) -> list[Record]:
    other = next(i for i, r in enumerate(found) if r.key == found[0].key and r != found[0])
    return [found[other], *found[1:other], found[0], *found[other + 1 :]]


@pytest.mark.parametrize(
    "mutation",
    [
        pytest.param(lambda found: found[1:], id="dropped"),
        pytest.param(lambda found: [*found, found[0]], id="doubled"),
        pytest.param(swapped, id="reordered"),
    ],
)
def test_the_proof_fails_when_records_are(
    connection: KafkaConnection, move: Move, plan: Plan, mutation: Callable[[list[Record]], list[Record]]
) -> None:
    create(connection, plan)
    write(connection, move, records(60))
    producer = Producer(connection.client())
    for r in mutation(records(60)):
        assert r.key is not None
        partition = expected_partition("", r.key, move.target_partitions)
        producer.produce(move.target, r.value, r.key, partition, timestamp=r.timestamp, headers=list(r.headers))
    producer.flush()
    captured = captured_of(connection, move, {})
    with pytest.raises(UnsafeState, match="records in flight"):
        in_flight.prove(connection, move, captured.in_flight[move.source])


LEFT = LeftTable(partitioner="murmur2", source_partitions=3, target_partitions=5)


def registrations(partitions: int) -> list[Record]:
    """Subscriptions of 40 primary keys to 7 foreign keys and, from a left join, to none."""
    return [
        Record(b"fk-%d" % (n % 7) if n % 8 else None, wrapper(n, partitions), T0 + n, (("h", b"kept"),))
        for n in range(40)
    ]


def wrapper(number: int, partitions: int) -> bytes:
    key = b"pk-%d" % number
    partition = (java_murmur2(key) & 0x7FFFFFFF) % partitions
    return b"\x81\x02" + key + partition.to_bytes(4, "big")


def test_subscriptions_on_their_way_get_the_partitions_of_the_new_left_table(
    connection: KafkaConnection, move: Move
) -> None:
    move = move.model_copy(update={"left": LEFT})
    plan = plan_of(move.source, move)
    create(connection, plan)
    write(connection, move, registrations(LEFT.source_partitions))
    captured = captured_of(connection, move, {})
    carry(connection, plan, move, captured, 1)

    expected = {(r.key, r.value, r.timestamp, r.headers) for r in registrations(LEFT.target_partitions)}
    found = [r for of_partition in read(connection, move.target).values() for r in of_partition]
    assert {(r.key, r.value, r.timestamp, r.headers) for r in found} == expected
    assert in_flight.prove(connection, move, captured.in_flight[move.source]) == 40


def test_the_proof_fails_when_subscriptions_were_only_copied(connection: KafkaConnection, move: Move) -> None:
    plan = plan_of(move.source, move)
    create(connection, plan)
    write(connection, move, registrations(LEFT.source_partitions))
    captured = captured_of(connection, move, {})
    carry(connection, plan, move, captured, 1)
    with pytest.raises(UnsafeState, match="changed or in another order"):
        in_flight.prove(connection, move.model_copy(update={"left": LEFT}), captured.in_flight[move.source])


def test_a_subscription_that_names_a_wrong_partition_stops_the_copy(
    connection: KafkaConnection, move: Move
) -> None:
    move = move.model_copy(update={"left": LEFT})
    plan = plan_of(move.source, move)
    create(connection, plan)
    write(connection, move, registrations(LEFT.source_partitions + 1))
    with pytest.raises(UnsafeState, match="that names partition"):
        carry(connection, plan, move, captured_of(connection, move, {}), 1)
