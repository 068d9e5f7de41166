"""Snapshots that a copy must not begin with: each is found before a row is written, and reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.reading.log_batches import log_batches
from kafka_rescale.spark.snapshots.seed import candidates_for

from testbed.processes import wait_until
from tests.integration.copy_helpers import read
from tests.integration.seeded_restore import Restored, SeededRestore
from tests.support.changelogs import trim
from tests.support.snapshot_world import FIRST, HOUR_MS, PARTITIONS, STORE, Order, SnapshotWorld, orders_of_days

pytestmark = pytest.mark.integration

NEWEST, BEFORE = FIRST.minus(-3), FIRST.minus(-2)


@pytest.fixture
def world(client: dict[str, str], unique: str, tmp_path: Path) -> SnapshotWorld:
    world = SnapshotWorld(client, unique, tmp_path)
    world.create(orders_of_days(5), transactional=True)
    return world


@pytest.fixture
def restore(world: SnapshotWorld) -> SeededRestore:
    return SeededRestore.of(world)


def spoil(file: Path) -> None:
    """Change a byte in the middle of a file."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


def empty(file: Path) -> None:
    """Leave a file without content, as a full disk does."""
    file.write_bytes(b"")


def exchange(file: Path) -> None:
    """Replace a partition's rows by those of another partition."""
    another = next(other for other in file.parent.glob("*.parquet") if other != file)
    file.write_bytes(another.read_bytes())


# In `make test`, the rows of another partition: whatever the damage, the files have other bytes than were written.
@pytest.mark.parametrize(
    "damage", [pytest.param(spoil, marks=pytest.mark.slow), pytest.param(empty, marks=pytest.mark.slow), exchange]
)
def test_of_a_damaged_snapshot_no_row_is_written_and_the_day_before_is_used(
    world: SnapshotWorld, restore: SeededRestore, damage: Callable[[Path], None]
) -> None:
    world.take(BEFORE)
    world.take(NEWEST)
    damage(restore.files(NEWEST)[0])
    done = restore.run()
    assert done.seeded > 0
    assert 0 < done.tail < len(world.orders)
    (line,) = done.refused
    assert f"{restore.move.source}-0: not begun with {NEWEST}" in line
    assert "other bytes than were written" in line
    restore.assert_equal_to_a_full_copy()


def test_where_every_snapshot_is_damaged_everything_is_read(world: SnapshotWorld, restore: SeededRestore) -> None:
    world.take(FIRST)
    for file in restore.files(FIRST):
        spoil(file)
    done = restore.run()
    assert (done.seeded, done.tail, len(done.refused)) == (0, len(world.orders), PARTITIONS)
    restore.assert_equal_to_a_full_copy()


def test_a_file_that_a_task_can_not_read_is_no_reason_to_fail(
    world: SnapshotWorld, restore: SeededRestore
) -> None:
    """The driver has seen the file, but it does not exist where the task runs."""
    world.take(FIRST)
    task = restore.task()
    for file in restore.files(FIRST):
        file.unlink()
    done = restore.run(task)
    assert (done.seeded, done.tail, len(done.refused)) == (0, len(world.orders), PARTITIONS)
    restore.assert_equal_to_a_full_copy()


def test_a_snapshot_that_is_newer_than_the_fence_is_not_used(world: SnapshotWorld, restore: SeededRestore) -> None:
    """Its rows would have a state that the log does not have up to the fence."""
    world.take(FIRST)
    file, ends = restore.manifest(FIRST), restore.ends()
    known = json.loads(file.read_text())
    for partition in known["partitions"]:
        partition["position"] = ends[restore.move.source, partition["partition"]] + 1
    file.write_text(json.dumps(known))
    done = restore.run()
    assert (done.seeded, done.tail, len(done.refused)) == (0, len(world.orders), PARTITIONS)
    assert all("lies behind the end of the log" in line for line in done.refused)
    restore.assert_equal_to_a_full_copy()


def test_a_snapshot_of_another_generation_is_not_used(world: SnapshotWorld, restore: SeededRestore) -> None:
    """A new topic of the same name has other offsets, so the snapshot's position would mean something else."""
    world.take(FIRST)
    file = restore.manifest(FIRST)
    known = json.loads(file.read_text())
    for changes in ({"topic_id": "made-anew"}, {"topic": f"{world.application}-g2-{STORE}-changelog"}):
        file.write_text(json.dumps(known | changes))
        found = restore.candidates()
        assert found.by_source == {}
        assert "there is no snapshot of this topic" in found.remarks[0]
    assert restore.run() == Restored(0, len(world.orders))


def test_a_snapshot_is_not_used_where_the_log_behind_it_is_not_whole(
    world: SnapshotWorld, restore: SeededRestore
) -> None:
    world.take(FIRST)
    admin, source = ClusterAdmin(restore.connection), restore.move.source
    admin.alter_configs(source, {"cleanup.policy": "compact,delete", "retention.ms": "-1"})
    for partition, end in admin.end_offsets([source])[source].items():
        trim(world.client, source, partition, end - 3)
    admin.alter_configs(source, {"cleanup.policy": "compact"})
    done = restore.run()
    assert (done.seeded, done.tail) == (0, sum(map(len, read(restore.connection, source).values())))
    assert len(done.refused) == PARTITIONS
    assert all("were removed" in line for line in done.refused)


def test_a_snapshot_is_not_used_where_deletions_behind_it_may_go_at_any_time(
    client: dict[str, str], unique: str, tmp_path: Path
) -> None:
    """The log cleaner has seen these deletions, but has removed no record after the snapshot's position."""
    world = SnapshotWorld(client, unique, tmp_path / "snapshots")
    world.create(orders_of_days(1), segment_ms="60000", min_cleanable_dirty_ratio="0.001")
    world.take(FIRST)
    names = sorted({order.customer for order in world.orders})
    world.go_on([Order(name, None, FIRST.end_ms + n) for n, name in enumerate(names)])
    # The broker closes a segment at the first record whose time is a minute later.
    world.go_on([Order(f"new-{n}", 1, FIRST.end_ms + HOUR_MS + n) for n in range(20)])
    restore = SeededRestore.of(world)
    admin, source = ClusterAdmin(restore.connection), restore.move.source
    ends = admin.end_offsets([source])[source]
    admin.alter_configs(source, {"min.compaction.lag.ms": "0"})

    def seen_by_the_cleaner() -> bool:
        logs = [log_batches(restore.connection, source, p, 0, end) for p, end in ends.items()]
        return all(any(batch.has_delete_horizon for batch in log) for log in logs)

    wait_until(seen_by_the_cleaner, timeout=120, what="the log cleaner")
    done = restore.run()
    assert done.seeded == 0
    assert len(done.refused) == PARTITIONS
    assert all("may be removed at any time" in line for line in done.refused)
    restore.assert_equal_to_a_full_copy()


def test_of_a_log_that_holds_more_than_its_last_records_there_is_none(
    world: SnapshotWorld, restore: SeededRestore
) -> None:
    world.take(FIRST)
    found = restore.candidates()
    assert (len(found.by_source), found.remarks) == (PARTITIONS, [])
    for other in (restore.candidates(source=world.input), restore.candidates(store_type="versioned")):
        assert other.by_source == {}
        assert "holds more than a snapshot does" in other.remarks[0]
    nothing = candidates_for(restore.connection, "", world.application, [restore.move])
    assert (nothing.by_source, nothing.remarks) == ({}, [])
