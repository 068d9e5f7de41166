"""A topic that grows in place: what moves is copied once and gets a tombstone where it was.

All else is untouched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from kafka_rescale.core.control.journal import Captured
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.errors import Fenced, UnsafeState
from kafka_rescale.core.formats.record_batches import size_of
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy import in_flight
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.rehearsal import record_limits, rehearse_unit
from kafka_rescale.kafka.copy.settings import BULK
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.reading.committed import copy_consumer
from kafka_rescale.kafka.writing.producer import UnitProducer

from testbed.broker import EmbeddedBroker
from tests.integration.copy_helpers import T0, Record, read
from tests.support.in_place_logs import (
    append,
    assert_moved,
    captured_of,
    changelog,
    grown,
    history,
    home_of,
    in_place,
    live,
    moving,
    repartition,
    written,
)

pytestmark = pytest.mark.integration

SMALL = replace(BULK, poll_records=20, commit_records=30, commit_seconds=3600)
"""There are several transactions per partition, so that a kill comes between two of them."""

MOVES, ZEROS = b"a", bytes(500_000)


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


def worker_of(connection: KafkaConnection, plan: Plan, captured: Captured) -> CopyWorker:
    worker = CopyWorker(connection, plan, units_of(plan.moves), SMALL)
    carried = [u.source for u in units_of(plan.repartitions)]
    worker.begin(in_flight.starts_and_ends(captured, carried)[0])
    return worker


def move_all(connection: KafkaConnection, plan: Plan, captured: Captured) -> CopyWorker:
    """Do what a move job does, and return the closed worker for its marks."""
    worker = worker_of(connection, plan, captured)
    try:
        ends = {u.source: captured.ends[u.source[0]][u.source[1]] for u in units_of(plan.moves)}
        worker.run_to(ends, now_ms(), exactly=True)
    finally:
        worker.close()
    return worker


@pytest.mark.parametrize(
    ("before", "after", "partitioner"),
    [(4, 8, "murmur2"), (4, 6, "crc32"), (4, 6, "linear-hashing:4")],
)
def test_only_what_moves_is_copied_and_it_is_buried_where_it_was(
    connection: KafkaConnection, unique: str, before: int, after: int, partitioner: str
) -> None:
    move = changelog(unique, before, after, partitioner=partitioner)
    plan = in_place(unique, move)
    log = written(connection, move, history())
    captured = captured_of(connection, plan)
    grown(connection, plan)
    worker = move_all(connection, plan, captured)
    assert_moved(move, log, read(connection, move.source))
    copied = sum(w.mark.records for w in worker.writers.values())
    assert copied == sum(map(len, moving(move, log).values()))
    assert 0 < copied < 400


def test_with_a_static_partitioner_nothing_is_written(connection: KafkaConnection, unique: str) -> None:
    move = changelog(unique, 4, 6, partitioner="static:tests.support.user_partitioners:pinned")
    plan = in_place(unique, move)
    log = written(connection, move, history())
    captured = captured_of(connection, plan)
    grown(connection, plan)
    move_all(connection, plan, captured)
    assert read(connection, move.source) == {**log, 4: [], 5: []}


def test_killed_between_two_transactions_it_goes_on_and_a_zombie_is_fenced(
    connection: KafkaConnection, unique: str
) -> None:
    move = changelog(unique, 4, 8)
    plan = in_place(unique, move)
    log = written(connection, move, history())
    captured = captured_of(connection, plan)
    grown(connection, plan)
    zombie = worker_of(connection, plan, captured)
    while not any(w.mark.records for w in zombie.writers.values()):
        zombie.step()
    assert any(w.position < captured.ends[s[0]][s[1]] for s, w in zombie.writers.items())
    move_all(connection, plan, captured)
    with pytest.raises(Fenced):
        go_on(zombie)
    zombie.close()
    move_all(connection, plan, captured)
    assert_moved(move, log, read(connection, move.source))


def test_a_producer_that_knew_the_topic_before_its_growth_hears_of_it(
    connection: KafkaConnection, unique: str
) -> None:
    """The client library alone would look for new partitions only minutes later."""
    ClusterAdmin(connection).ensure_topic(unique, 2, 1, {})
    producer = UnitProducer(connection, "a unit", unique, 1_000)
    with producer.transaction():
        producer.produce(unique, b"v", b"k", 0, timestamp=T0)
    ClusterAdmin(connection).grow_topic(unique, 4)
    with producer.transaction():
        producer.produce(unique, b"v", b"k", 3, timestamp=T0)
    producer.commit([], copy_consumer(connection, unique))
    assert [len(records) for records in read(connection, unique).values()] == [1, 0, 0, 1]


def go_on(worker: CopyWorker) -> None:
    while True:
        worker.step()
        worker._commit([w for w in worker.writers.values() if w.is_dirty])


def test_a_second_growth_leaves_alone_what_the_first_one_left_behind(
    connection: KafkaConnection, unique: str
) -> None:
    """With murmur2, the growth from 4 to 6 to 8 brings keys back to partitions that have their tombstones."""
    first = changelog(unique, 4, 6)
    written(connection, first, history())
    plan = in_place(unique, first)
    captured = captured_of(connection, plan)
    grown(connection, plan)
    move_all(connection, plan, captured)
    append(connection, first, 6, history(100))
    expected = {r.key: r for r in [*history(), *history(100)]}

    second = changelog(unique, 6, 8, grown_from=(4,))
    plan = in_place(unique, second).model_copy(update={"generation": 3})
    captured = captured_of(connection, plan)
    grown(connection, plan)
    move_all(connection, plan, captured)

    after, rule = read(connection, second.source), partitioner_named("murmur2")
    alive = {key: r for key, r in expected.items() if r.value is not None}
    assert live(after) == {key: {home_of(second, key)} for key in alive}
    assert {key: {r.key: r for r in after[home_of(second, key)]}[key] for key in alive} == alive
    homes = [[rule.partition(key or b"", count) for count in (4, 6, 8)] for key in alive]
    assert any(first == last != between for first, between, last in homes), "no key has come back"


def test_what_was_in_flight_is_written_again_behind_the_ends_in_order_and_once(
    connection: KafkaConnection, unique: str
) -> None:
    move = repartition(unique, 2, 4)
    plan = in_place(unique, move)
    log = written(
        connection, move, (Record(b"k%d" % (i % 7), b"%d" % i, T0 + i, (("c", b"mine"),)) for i in range(60))
    )
    captured = captured_of(connection, plan, {0: 10, 1: 5})
    grown(connection, plan)
    move_all(connection, plan, captured)
    move_all(connection, plan, captured)
    ranges = captured.in_flight[move.source]
    assert in_flight.prove(connection, move, ranges) == 45
    after = read(connection, move.source)
    assert {p: after[p][: len(records)] for p, records in log.items()} == log
    assert sum(map(len, after.values())) == 60 + 45
    append(connection, move, 4, [Record(b"k1", b"by somebody else")])
    with pytest.raises(UnsafeState, match="Another process has written to it"):
        in_flight.prove(connection, move, ranges)


def test_a_rehearsal_counts_what_would_move_and_finds_what_can_not(
    connection: KafkaConnection, unique: str
) -> None:
    move = changelog(unique, 4, 8)
    log = written(connection, move, history())
    found = list(rehearsed(connection, move))
    assert {p.partition: p.records for p in found} == {p: len(rs) for p, rs in moving(move, log).items()}
    assert read(connection, move.source) == log
    stray = next(r.key for r in log[1])
    producer = Producer(connection.client())
    producer.produce(move.source, b"v", stray, 0)
    assert producer.flush(30) == 0
    with pytest.raises(UnsafeState, match="which murmur2 puts into partition 1"):
        list(rehearsed(connection, move))


def rehearsed(connection: KafkaConnection, move: Move) -> Iterator[PartitionProgress]:
    admin = ClusterAdmin(connection)
    ends, limits = admin.end_offsets([move.source])[move.source], record_limits(admin, [move], 0)[move.target]
    return (rehearse_unit(connection, unit, 0, ends[unit.partition], limits) for unit in units_of([move]))


def test_a_rehearsal_finds_what_was_taken_compressed_and_would_not_be_without(
    connection: KafkaConnection, unique: str
) -> None:
    move, admin = changelog(unique, 1, 8), ClusterAdmin(connection)
    admin.ensure_topic(move.source, 1, 1, {"cleanup.policy": "compact", "max.message.bytes": "100000"})
    produce(connection, move, ZEROS, **{"compression.type": "gzip"})
    with pytest.raises(UnsafeState, match=r"partition 0 offset 0: found a record of 5000\d\d bytes without"):
        list(rehearsed(connection, move))

    found = size_of(MOVES, ZEROS)
    admin.alter_configs(move.source, {"max.message.bytes": str(found - 1)})
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        produce(connection, move, ZEROS)
    admin.alter_configs(move.source, {"max.message.bytes": str(found)})
    produce(connection, move, ZEROS)
    assert sum(p.records for p in rehearsed(connection, move)) == 2


def test_a_rehearsal_finds_what_the_brokers_take_for_too_old_by_now(
    connection: KafkaConnection, unique: str
) -> None:
    move, admin = changelog(unique, 1, 8), ClusterAdmin(connection)
    admin.ensure_topic(move.source, 1, 1, {"cleanup.policy": "compact"})
    produce(connection, move, b"v")
    assert sum(p.records for p in rehearsed(connection, move)) == 1
    admin.alter_configs(move.source, {"message.timestamp.before.max.ms": "3600000"})
    with pytest.raises(UnsafeState, match=f"timestamp {T0}, which brokers refuse"):
        list(rehearsed(connection, move))
    with pytest.raises(KafkaException, match="INVALID_TIMESTAMP"):
        produce(connection, move, b"v")


def produce(connection: KafkaConnection, move: Move, value: bytes, **settings: Any) -> None:
    """Write a record that moves, with the time ``T0``, and raise the broker's error."""
    answers: list[KafkaError | None] = []
    producer = Producer(connection.client(**{"message.max.bytes": 1_000_000, **settings}))
    told: Any = {"timestamp": T0, "on_delivery": lambda error, _: answers.append(error)}
    producer.produce(move.source, value, MOVES, 0, **told)
    assert producer.flush(30) == 0
    if answers[0] is not None:
        raise KafkaException(answers[0])


def test_a_rehearsal_goes_on_where_records_are_deleted_under_it(connection: KafkaConnection, unique: str) -> None:
    """Kafka Streams deletes records that it has processed from repartition topics in this way."""
    move = repartition(unique, 2, 4)
    log = written(connection, move, [Record(b"k%d" % (i % 7), b"%d" % i, T0 + i) for i in range(60)])
    admin = ClusterAdmin(connection)
    ends = admin.end_offsets([move.source])[move.source]
    admin.delete_records({move.source: {p: end - 4 for p, end in ends.items()}})
    assert {p.partition: p.records for p in rehearsed(connection, move)} == {p: min(4, len(log[p])) for p in log}
