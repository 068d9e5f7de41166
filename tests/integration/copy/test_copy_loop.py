"""The copy loop on a real broker: which records arrive, where, and how often."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from kafka_rescale.core.errors import Fenced, UnsafeState
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.progress import CopyProgress
from kafka_rescale.kafka.copy.settings import LIVE
from kafka_rescale.kafka.copy.units import units_of

from testbed.broker import EmbeddedBroker
from tests.integration.copy_helpers import (
    T0,
    Record,
    assert_copied,
    changelog,
    create,
    ends_of,
    per_key,
    plan_of,
    read,
    write,
)

pytestmark = pytest.mark.integration


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


def copy(connection: KafkaConnection, plan: Plan, *moves: Move) -> None:
    worker = CopyWorker(connection, plan, units_of(moves or plan.moves))
    try:
        worker.begin()
        worker.run_to(ends_of(connection, *(moves or plan.moves)), now_ms())
    finally:
        worker.close()


def copied(connection: KafkaConnection, unique: str, before: int, after: int) -> tuple[Plan, Move]:
    """A store of 100 keys that has been copied."""
    move = changelog(unique, "key-value", before, after)
    plan = plan_of(unique, move)
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(100)])
    copy(connection, plan)
    return plan, move


def entries(store_type: str, count: int = 300) -> Iterator[Record]:
    """Updates of few keys with deletions, headers, and times that are out of order."""
    for i in range(count):
        inner = f"key-{i % 37}".encode()
        start = T0 + 60_000 * (i % 5)
        key = (
            inner
            + {
                "key-value": b"",
                "timestamped-key-value": b"",
                "window": struct.pack(">qi", start, 0),
                "timestamped-window": struct.pack(">qi", start, i % 2),
                "session": struct.pack(">qq", start + 30_000, start),
            }[store_type]
        )
        value = None if i % 11 == 0 else f"value-{i}".encode()
        yield Record(key, value, T0 + i * (-1) ** i, (("h", b"%d" % i), ("n", None)) if i % 3 == 0 else ())


@pytest.mark.parametrize(("source", "target"), [(4, 8), (4, 6), (8, 4)])
@pytest.mark.parametrize("store_type", ["key-value", "timestamped-window", "session"])
def test_every_record_arrives_once_in_order_at_its_partition(
    connection: KafkaConnection, unique: str, store_type: str, source: int, target: int
) -> None:
    move = changelog(unique, store_type, source, target)
    plan = plan_of(unique, move)
    create(connection, plan)
    write(connection, move, entries(store_type))

    copy(connection, plan)

    assert_copied(connection, move)
    assert sum(len(r) for r in read(connection, move.target).values()) == 300


def test_only_the_pair_of_consistency_headers_is_dropped(connection: KafkaConnection, unique: str) -> None:
    move = changelog(unique, "key-value", 1, 2)
    plan = plan_of(unique, move)
    create(connection, plan)
    pair = (("v", b"\x00"), ("c", b"position"))
    write(
        connection,
        move,
        [
            Record(b"a", b"1", headers=(*pair, ("mine", b"1"))),
            Record(b"b", b"1", headers=(("v", b"\x03"),)),
            Record(b"d", b"1", headers=(("c", b"my own"),)),
        ],
    )

    copy(connection, plan)

    found = {k: r[0].headers for k, r in per_key(read(connection, move.target)).items()}
    assert found == {b"a": (("mine", b"1"),), b"b": (("v", b"\x03"),), b"d": (("c", b"my own"),)}


def test_lag_reaches_zero_behind_markers_and_aborted_records(connection: KafkaConnection, unique: str) -> None:
    move = changelog(unique, "key-value", 2, 4)
    plan = plan_of(unique, move)
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"committed") for i in range(20)], transactional_id=f"{unique}-1")
    write(
        connection,
        move,
        [Record(b"k%d" % i, b"aborted") for i in range(20)],
        transactional_id=f"{unique}-2",
        abort=True,
    )

    copy(connection, plan)

    committed = ClusterAdmin(connection).committed(plan.copy_group, {move.source: 2})
    assert {(t, p): o for t, ps in committed.items() for p, o in ps.items()} == ends_of(connection, move)
    assert {r.value for rs in read(connection, move.target).values() for r in rs} == {b"committed"}


def test_an_empty_partition_gets_a_position_too(connection: KafkaConnection, unique: str) -> None:
    move = changelog(unique, "key-value", 3, 6)
    plan = plan_of(unique, move)
    create(connection, plan)

    copy(connection, plan)

    assert ClusterAdmin(connection).committed(plan.copy_group, {move.source: 3}) == {
        move.source: {0: 0, 1: 0, 2: 0}
    }


def test_a_second_run_copies_only_what_is_new(connection: KafkaConnection, unique: str) -> None:
    move = changelog(unique, "key-value", 2, 4)
    plan = plan_of(unique, move)
    create(connection, plan)
    for version in range(3):
        write(connection, move, [Record(b"k%d" % i, b"%d" % version) for i in range(50)])
        copy(connection, plan)

    assert_copied(connection, move)
    assert sum(len(r) for r in read(connection, move.target, committed=False).values()) == 150


def test_a_newer_worker_fences_the_older_one(connection: KafkaConnection, unique: str) -> None:
    move = changelog(unique, "key-value", 1, 2)
    plan = plan_of(unique, move)
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(100)])
    older = CopyWorker(connection, plan, units_of([move]), LIVE)
    older.begin()

    copy(connection, plan)

    with pytest.raises(Fenced):
        older.run_to(ends_of(connection, move), now_ms())
    older.close()
    assert_copied(connection, move)
    assert sum(len(r) for r in read(connection, move.target).values()) == 100


def test_a_source_that_ends_below_the_position_is_unsafe(connection: KafkaConnection, unique: str) -> None:
    plan, move = copied(connection, unique, 1, 2)
    ClusterAdmin(connection).commit(plan.copy_group, {move.source: {0: 101}})

    with pytest.raises(UnsafeState, match="below the position 101"):
        copy(connection, plan)


@pytest.mark.parametrize("policy", ["compact,delete", "compact"])
def test_expired_records_are_skipped_where_records_may_expire(
    connection: KafkaConnection, unique: str, policy: str
) -> None:
    move = changelog(unique, "key-value", 1, 2)
    plan = plan_of(unique, move)
    create(connection, plan, {"cleanup.policy": "compact,delete"})
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(10)])
    copy(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"2") for i in range(10)])
    admin = ClusterAdmin(connection)
    admin.delete_records({move.source: {0: 15}})
    admin.alter_configs(move.source, {"cleanup.policy": policy})

    if policy == "compact":
        with pytest.raises(UnsafeState, match="log start 15"):
            copy(connection, plan)
        return
    copy(connection, plan)
    values = {k: [r.value for r in rs] for k, rs in per_key(read(connection, move.target)).items()}
    assert values == {b"k%d" % i: [b"1"] if i < 5 else [b"1", b"2"] for i in range(10)}


def test_a_key_of_another_partition_is_refused(connection: KafkaConnection, unique: str) -> None:
    move = changelog(unique, "key-value", 4, 8)
    plan = plan_of(unique, move)
    create(connection, plan)
    # The declared type is wrong: these are window keys, and their last 12 bytes do not decide the partition.
    window = changelog(unique, "window", 4, 8)
    write(connection, window, entries("window"))

    worker = CopyWorker(connection, plan, units_of([move]))
    worker.begin()
    with pytest.raises(UnsafeState, match="puts into partition"):
        worker.run_to(ends_of(connection, move), now_ms())
    worker.close()
    assert not any(read(connection, move.target).values())


def test_a_worker_that_was_fenced_while_idle_is_no_longer_said_to_follow(
    connection: KafkaConnection, unique: str
) -> None:
    move = changelog(unique, "key-value", 2, 4)
    plan = plan_of(unique, move)
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"v") for i in range(20)])
    idle = CopyWorker(connection, plan, units_of([move]), LIVE)
    idle.begin()
    idle.announce("of catch_up")
    progress = CopyProgress(connection, plan, [move])
    assert progress.all_follow("of catch_up", units_of([move]))

    copy(connection, plan)

    assert not progress.all_follow("of catch_up", units_of([move]))
    progress.close()
    idle.close()


def test_the_last_delta_dates_no_mark_that_nothing_else_changes(connection: KafkaConnection, unique: str) -> None:
    plan, move = copied(connection, unique, 4, 8)
    worker = CopyWorker(connection, plan, units_of([move]), LIVE)
    try:
        worker.begin()
        before = {source: writer.mark.as_of_ms for source, writer in worker.writers.items()}
        worker.run_to(ends_of(connection, move), now_ms(), is_last=True)
        after = {source: writer.restart.mark.as_of_ms for source, writer in worker.writers.items()}
        dated = [source for source in before if after[source] > before[source]]
        assert len(dated) == len(worker.commits._buckets), "one position of each bucket"
        worker.run_to(ends_of(connection, move), now_ms())
        last = {source: writer.restart.mark.as_of_ms for source, writer in worker.writers.items()}
        assert all(last[source] > after[source] for source in before)
    finally:
        worker.close()


def test_a_worker_that_was_fenced_while_idle_notices_it_with_the_last_delta(
    connection: KafkaConnection, unique: str
) -> None:
    plan, move = copied(connection, unique, 2, 4)
    older = CopyWorker(connection, plan, units_of([move]), LIVE)
    older.begin()
    CopyWorker(connection, plan, units_of([move]), LIVE).close()

    with pytest.raises(Fenced):
        older.run_to(ends_of(connection, move), now_ms(), is_last=True)
    older.close()
