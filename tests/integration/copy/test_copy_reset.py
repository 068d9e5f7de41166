"""Copies that can't continue start from scratch, and say so."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.errors import Fenced, UnsafeState
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.copy import reset as copy_reset
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.marks import RESETTING, Mark, read_positions
from kafka_rescale.kafka.copy.reset import restart, restart_stale
from kafka_rescale.kafka.copy.settings import StaleCopy
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.reading.committed import copy_consumer

from testbed.broker import EmbeddedBroker
from tests.integration.copy_helpers import (
    Record,
    assert_copied,
    changelog,
    create,
    ends_of,
    killed_within_commit,
    per_key,
    plan_of,
    read,
    write,
)

pytestmark = pytest.mark.integration
DAY_MS = 86_400_000


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


def copy(connection: KafkaConnection, move: Move, plan: Plan, clock: Callable[[], int] = now_ms) -> None:
    worker = CopyWorker(connection, plan, units_of([move]), clock=clock)
    try:
        worker.begin()
        worker.run_to(ends_of(connection, move), clock())
    finally:
        worker.close()


def marks(connection: KafkaConnection, move: Move, plan: Plan) -> list[Mark]:
    consumer = copy_consumer(connection, plan.copy_group)
    try:
        return [p.mark for p in read_positions(consumer, [u.source for u in units_of([move])]).values()]
    finally:
        consumer.close()


@pytest.fixture
def move(unique: str) -> Move:
    return changelog(unique, "key-value", 2, 4)


@pytest.fixture
def plan(unique: str, move: Move) -> Plan:
    return plan_of(unique, move)


def test_a_writer_that_was_killed_within_its_commit_is_not_waited_for(
    connection: KafkaConnection, move: Move, plan: Plan
) -> None:
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(40)])
    copy(connection, move, plan)
    killed = killed_within_commit(connection, plan, units_of([move])[0], plan.copy_group)
    assert restart_stale(connection, plan, [move], now_ms(), attempt=1) == []
    copy(connection, move, plan)
    assert_copied(connection, move)
    with pytest.raises(KafkaException, match="fenced"):
        killed.commit_transaction(10)


def test_a_copy_that_paused_longer_than_deletions_are_kept_starts_from_scratch(
    connection: KafkaConnection, move: Move, plan: Plan
) -> None:
    create(connection, plan, {"delete.retention.ms": "20000"})
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(40)])
    copy(connection, move, plan)
    # Meanwhile k0 is deleted, and compaction removes its tombstone and everything before it: the topic is as new.
    admin = ClusterAdmin(connection)
    admin.alter_configs(move.source, {"cleanup.policy": "compact,delete"})
    ends = admin.end_offsets([move.source])
    admin.delete_records(ends)
    admin.alter_configs(move.source, {"cleanup.policy": "compact"})
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(1, 40)])
    later = now_ms() + 21_000

    # A local store that has restored the first copy would keep k0 forever.
    with pytest.raises(UnsafeState, match="has been pre-warmed with"):
        restart_stale(connection, plan, [move], later, prewarmed=True, attempt=1)
    lines = restart_stale(connection, plan, [move], later, attempt=1)

    assert len(lines) == 1
    assert "from scratch" in lines[0]
    assert "deletions are kept for 20.0 s only" in lines[0]
    copy(connection, move, plan, clock=lambda: later)
    assert_copied(connection, move)
    assert b"k0" not in per_key(read(connection, move.target))
    assert admin.describe_topics([move.target])[move.target].cleanup_policy == ("compact",)
    assert restart_stale(connection, plan, [move], later, attempt=1) == []


def test_a_copy_that_is_young_enough_goes_on(connection: KafkaConnection, move: Move, plan: Plan) -> None:
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(40)])
    copy(connection, move, plan)
    assert restart_stale(connection, plan, [move], now_ms() + DAY_MS // 2, attempt=1) == []
    assert sum(mark.records for mark in marks(connection, move, plan)) == 40


def test_a_worker_that_gets_too_slow_stops_before_it_misses_a_deletion(
    connection: KafkaConnection, move: Move, plan: Plan
) -> None:
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(40)])
    clock = iter([*[now_ms()] * 4, *[now_ms() + DAY_MS + 1] * 1000])
    with pytest.raises(StaleCopy, match="at most delete"):
        copy(connection, move, plan, clock=lambda: next(clock))


def test_a_target_that_was_recreated_is_filled_again(connection: KafkaConnection, move: Move, plan: Plan) -> None:
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(40)])
    copy(connection, move, plan)
    ClusterAdmin(connection).delete_topics([move.target])
    create(connection, plan)
    assert "recreated" in restart_stale(connection, plan, [move], now_ms(), attempt=1)[0]
    copy(connection, move, plan)
    assert_copied(connection, move)


def test_a_target_with_records_of_unknown_origin_is_emptied(
    connection: KafkaConnection, move: Move, plan: Plan
) -> None:
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(40)])
    copy(connection, move, plan)
    ClusterAdmin(connection).delete_group(plan.copy_group)
    assert "unknown origin" in restart_stale(connection, plan, [move], now_ms(), attempt=1)[0]
    copy(connection, move, plan)
    assert_copied(connection, move)
    assert sum(len(r) for r in read(connection, move.target).values()) == 40


@pytest.mark.parametrize("changes", [{"partitioner": "crc32"}, {"store_type": "window"}])
def test_a_copy_made_by_another_declaration_starts_from_scratch(
    connection: KafkaConnection, unique: str, changes: dict[str, str]
) -> None:
    # With one partition, a wrong declaration can't be noticed: any function puts every key there.
    move = changelog(unique, "key-value", 1, 4)
    plan = plan_of(unique, move)
    create(connection, plan)
    write(connection, move, [Record(b"a key that is long enough: %d" % i, b"1") for i in range(40)])
    wrong = move.model_copy(update=changes)
    copy(connection, wrong, plan)

    with pytest.raises(UnsafeState, match="has been pre-warmed with"):
        restart_stale(connection, plan, [move], now_ms(), prewarmed=True, attempt=1)
    assert "by another declaration" in restart_stale(connection, plan, [move], now_ms(), attempt=1)[0]
    copy(connection, move, plan)
    assert_copied(connection, move)
    assert restart_stale(connection, plan, [move], now_ms(), attempt=1) == []


def test_a_job_with_an_older_declaration_leaves_the_copy_of_the_newer_one(
    connection: KafkaConnection, move: Move, plan: Plan
) -> None:
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(40)])
    ControlTopic(connection, plan.application).update(lambda _: {Concern.JOURNAL: Journal(plan=plan)})
    copy(connection, move, plan)
    older = move.model_copy(update={"partitioner": "crc32"})
    with pytest.raises(Fenced, match="the expansion to 4 partitions"):
        restart_stale(connection, plan_of(plan.application, older), [older], now_ms(), attempt=1)
    assert_copied(connection, move)


def test_a_copy_of_an_earlier_version_goes_on_and_says_its_declaration_from_then_on(
    connection: KafkaConnection, move: Move, plan: Plan
) -> None:
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(40)])
    copy(connection, move, plan)
    consumer = copy_consumer(connection, plan.copy_group)
    known = {"as_of_ms": now_ms(), "records": 20, "bytes": 9, "attempt": 0, "state": "", "session": ""}
    at = ends_of(connection, move).items()
    offsets = [TopicPartition(*source, end, metadata=json.dumps(known)) for source, end in at]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()

    assert restart_stale(connection, plan, [move], now_ms(), attempt=1) == []
    write(connection, move, [Record(b"k%d" % i, b"2") for i in range(40)])
    copy(connection, move, plan)
    assert {mark.fingerprint for mark in marks(connection, move, plan)} == {move.fingerprint}
    assert_copied(connection, move)


@pytest.mark.parametrize("step", ["before", "after"])
def test_a_restart_that_dies_around_the_emptying_is_done_again(
    connection: KafkaConnection, move: Move, plan: Plan, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(40)])
    copy(connection, move, plan)
    empty = copy_reset.empty

    def dies(*arguments: Any) -> None:
        if step == "after":
            empty(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(copy_reset, "empty", dies)
        with pytest.raises(KeyboardInterrupt):
            restart(connection, plan, move, Mark(as_of_ms=now_ms()))
    assert {mark.state for mark in marks(connection, move, plan)} == {RESETTING}
    with pytest.raises(StaleCopy):
        copy(connection, move, plan)

    assert "interrupted" in restart_stale(connection, plan, [move], now_ms(), attempt=1)[0]
    copy(connection, move, plan)
    assert_copied(connection, move)
    assert sum(len(r) for r in read(connection, move.target).values()) == 40


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_restart_that_empties_late_leaves_what_a_newer_one_has_copied(
    connection: KafkaConnection, move: Move, plan: Plan, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    create(connection, plan, {"cleanup.policy": policy})
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(40)])
    copy(connection, move, plan)
    empty = copy_reset.empty

    def wakes_late(*arguments: Any) -> None:
        monkeypatch.setattr(copy_reset, "empty", empty)
        restart(connection, plan, move, Mark(as_of_ms=now_ms()))
        copy(connection, move, plan)
        empty(*arguments)

    monkeypatch.setattr(copy_reset, "empty", wakes_late)
    with pytest.raises(Fenced):
        restart(connection, plan, move, Mark(as_of_ms=now_ms()))

    assert_copied(connection, move)
    configs = ClusterAdmin(connection).describe_topics([move.target])[move.target]
    assert ",".join(configs.cleanup_policy) == policy


def test_a_restart_fences_a_worker_that_is_still_writing(
    connection: KafkaConnection, move: Move, plan: Plan
) -> None:
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(40)])
    zombie = CopyWorker(connection, plan, units_of([move]))
    zombie.begin()
    restart(connection, plan, move, Mark(as_of_ms=now_ms()))
    with pytest.raises(Fenced):
        zombie.run_to(ends_of(connection, move), now_ms())
    zombie.close()
    copy(connection, move, plan)
    assert_copied(connection, move)


def test_foreign_records_in_the_target_do_not_survive_a_restart(
    connection: KafkaConnection, move: Move, plan: Plan
) -> None:
    create(connection, plan)
    producer = Producer(connection.client())
    producer.produce(move.target, b"stale", b"ghost", 0)
    producer.flush()
    restart(connection, plan, move, Mark(as_of_ms=now_ms()))
    assert not any(read(connection, move.target).values())
