"""A copy that begins with a snapshot: only the tail of the log is read, and the state is that of a whole copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.plan import Move, Plan
from kafka_rescale.kafka import seeding
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.copy_progress import CopyProgress
from kafka_rescale.kafka.copy_reset import restart_stale
from kafka_rescale.kafka.copy_units import units_of
from kafka_rescale.kafka.waiting import now_ms
from kafka_rescale.spark.copy_tasks import CopyToEnds
from kafka_rescale.spark.snapshot_seed import seeds_for
from kafka_rescale.spark.task_errors import TaskFailure

from tests.integration.copy_helpers import Record, changelog, expected_partition, per_key, plan_of, read
from tests.support.changelogs import trim
from tests.support.snapshot_world import FIRST, PARTITIONS, STORE, SnapshotWorld, orders_of_days

pytestmark = pytest.mark.integration

STORE_TYPE = "timestamped-key-value"
KEEP = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(2**62)}


@pytest.fixture
def world(client: dict[str, str], unique: str, tmp_path: Path) -> SnapshotWorld:
    world = SnapshotWorld(client, unique, tmp_path)
    world.create(orders_of_days(5), transactional=True)
    return world


@pytest.fixture
def connection(world: SnapshotWorld) -> KafkaConnection:
    return KafkaConnection(dict(world.client))


@pytest.fixture
def move(world: SnapshotWorld, connection: KafkaConnection) -> Move:
    move = changelog(world.application, STORE_TYPE, PARTITIONS, 5, store=STORE)
    ClusterAdmin(connection).ensure_topic(move.target, move.target_partitions, 1, KEEP)
    return move


def task(world: SnapshotWorld, connection: KafkaConnection, plan: Plan) -> CopyToEnds:
    """What a restore makes of the snapshots that there are."""
    moves = list(plan.changelogs)
    ends = CopyProgress(connection, plan, moves).ends()
    seeds = seeds_for(connection, str(world.directory), world.application, moves)
    return CopyToEnds(connection, plan, ends, now_ms(), seeds=seeds)


def restore(world: SnapshotWorld, connection: KafkaConnection, plan: Plan) -> tuple[int, int]:
    """Run a restore in this process; returns rows of snapshots and records read of the log."""
    restart_stale(connection, plan, list(plan.changelogs), now_ms())
    progress = CopyProgress(connection, plan, list(plan.changelogs))
    progress.read()
    seeded = sum(task(world, connection, plan)([unit] for unit in units_of(plan.changelogs)))
    return seeded, progress.read().records - seeded


def live(connection: KafkaConnection, topic: str) -> dict[bytes | None, Record]:
    """The state that a topic stands for."""
    last = {key: records[-1] for key, records in per_key(read(connection, topic)).items()}
    return {key: record for key, record in last.items() if record.value is not None}


def assert_equal_to_a_full_copy(connection: KafkaConnection, move: Move) -> None:
    assert live(connection, move.target) == live(connection, move.source)
    for partition, records in read(connection, move.target).items():
        for record in records:
            assert record.key is not None
            assert expected_partition(STORE_TYPE, record.key, move.target_partitions) == partition


def test_only_the_tail_is_read_and_the_state_is_that_of_the_whole_log(
    world: SnapshotWorld, connection: KafkaConnection, move: Move
) -> None:
    day = FIRST.minus(-3)
    world.take(day)
    plan = plan_of(world.application, move)

    seeded, tail = restore(world, connection, plan)

    assert seeded <= len(world.expected(day))
    assert tail == sum(map(len, read(connection, move.target).values())) - seeded
    assert 0 < tail < len(world.orders) / 3
    assert_equal_to_a_full_copy(connection, move)
    sources = per_key(read(connection, move.source))
    for key, records in per_key(read(connection, move.target)).items():
        assert sources[key][-len(records) :] == records, "the end of each history, in its order"


def test_a_second_run_copies_nothing_again(world: SnapshotWorld, connection: KafkaConnection, move: Move) -> None:
    world.take(FIRST)
    plan = plan_of(world.application, move)
    restore(world, connection, plan)
    before = read(connection, move.target)
    assert restore(world, connection, plan) == (0, 0)
    assert read(connection, move.target) == before


def test_without_a_snapshot_everything_is_read(
    world: SnapshotWorld, connection: KafkaConnection, move: Move
) -> None:
    assert restore(world, connection, plan_of(world.application, move)) == (0, len(world.orders))
    assert_equal_to_a_full_copy(connection, move)


def test_an_attempt_that_dies_among_the_rows_is_begun_anew(
    world: SnapshotWorld, connection: KafkaConnection, move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.take(FIRST.minus(-3))
    plan = plan_of(world.application, move)
    with monkeypatch.context() as dying:
        dying.setattr(seeding, "_as_messages", _killed)
        with pytest.raises(KeyboardInterrupt):
            restore(world, connection, plan)
    assert sum(map(len, read(connection, move.target).values())) == 0, "nothing is visible that was not committed"
    without_snapshots = CopyToEnds(connection, plan, task(world, connection, plan).ends, now_ms())
    with pytest.raises(TaskFailure, match="deletions are missed"):
        list(without_snapshots([units_of([move])]))

    seeded, _ = restore(world, connection, plan)

    assert seeded > 0
    assert_equal_to_a_full_copy(connection, move)
    lengths = {key: len(records) for key, records in per_key(read(connection, move.source)).items()}
    assert all(len(r) <= lengths[key] for key, r in per_key(read(connection, move.target)).items())


def test_a_snapshot_is_not_used_where_the_log_behind_it_is_not_whole(
    world: SnapshotWorld, connection: KafkaConnection, move: Move
) -> None:
    world.take(FIRST)
    admin = ClusterAdmin(connection)
    admin.alter_configs(move.source, {"cleanup.policy": "compact,delete", "retention.ms": "-1"})
    ends = admin.end_offsets([move.source])[move.source]
    for partition, end in ends.items():
        trim(world.client, move.source, partition, end - 3)
    admin.alter_configs(move.source, {"cleanup.policy": "compact"})
    seeded, tail = restore(world, connection, plan_of(world.application, move))
    assert (seeded, tail) == (0, sum(map(len, read(connection, move.source).values())))


def test_a_changelog_that_was_made_anew_has_no_snapshot(
    world: SnapshotWorld, connection: KafkaConnection, move: Move
) -> None:
    world.take(FIRST)
    found = seeds_for(connection, str(world.directory), world.application, [move])
    assert len(found) == PARTITIONS
    another = move.model_copy(update={"source": world.input})
    assert seeds_for(connection, str(world.directory), world.application, [another]) == {}
    versioned = move.model_copy(update={"store_type": "versioned"})
    assert seeds_for(connection, str(world.directory), world.application, [versioned]) == {}
    assert seeds_for(connection, "", world.application, [move]) == {}


def _killed(rows: Any) -> Any:
    raise KeyboardInterrupt
