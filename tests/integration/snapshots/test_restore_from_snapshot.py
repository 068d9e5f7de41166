"""A copy that begins with a snapshot reads only the tail of the log, and has the state of a full copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.kafka.copy import seeding
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.spark.jobs.task_errors import TaskFailure

from tests.integration.copy_helpers import read
from tests.integration.seeded_restore import Restored, SeededRestore
from tests.integration.spark_job_helpers import begin, submitted
from tests.support.snapshot_world import FIRST, PARTITIONS, SnapshotWorld, orders_of_days

pytestmark = pytest.mark.integration

NEWEST, BEFORE = FIRST.minus(-3), FIRST.minus(-2)


@pytest.fixture
def world(client: dict[str, str], unique: str, tmp_path: Path) -> SnapshotWorld:
    world = SnapshotWorld(client, unique, tmp_path / "snapshots")
    world.create(orders_of_days(5), transactional=True)
    return world


@pytest.fixture
def restore(world: SnapshotWorld) -> SeededRestore:
    return SeededRestore.of(world)


def test_only_the_tail_is_read_and_the_state_is_that_of_the_whole_log(
    world: SnapshotWorld, restore: SeededRestore
) -> None:
    world.take(NEWEST)
    done = restore.run()
    assert done.seeded <= len(world.expected(NEWEST))
    assert done.tail == sum(map(len, read(restore.connection, restore.move.target).values())) - done.seeded
    assert 0 < done.tail < len(world.orders) / 3
    assert done.refused == ()
    restore.assert_equal_to_a_full_copy()


def test_a_second_run_copies_nothing_again(world: SnapshotWorld, restore: SeededRestore) -> None:
    world.take(FIRST)
    restore.run()
    before = read(restore.connection, restore.move.target)
    assert restore.run() == Restored(0, 0)
    assert read(restore.connection, restore.move.target) == before


def test_without_a_snapshot_everything_is_read(world: SnapshotWorld, restore: SeededRestore) -> None:
    assert restore.run() == Restored(0, len(world.orders))
    restore.assert_equal_to_a_full_copy()


def test_an_attempt_that_dies_among_the_rows_is_begun_anew(
    world: SnapshotWorld, restore: SeededRestore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(rows: Any) -> Any:
        raise KeyboardInterrupt

    world.take(NEWEST)
    with monkeypatch.context() as dying:
        dying.setattr(seeding, "_as_messages", killed)
        with pytest.raises(KeyboardInterrupt):
            restore.run()
    assert sum(map(len, read(restore.connection, restore.move.target).values())) == 0, (
        "nothing uncommitted is seen"
    )
    with pytest.raises(TaskFailure, match="ended while it was seeding"):
        list(restore.task(snapshots=False)([units_of([restore.move])]))
    assert restore.run().seeded > 0
    restore.assert_equal_to_a_full_copy()


def test_an_attempt_that_was_overtaken_among_the_rows_leaves_nothing(
    world: SnapshotWorld, restore: SeededRestore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and the position of the tail are in one transaction, and a newer attempt has fenced the older one."""
    world.take(NEWEST)
    newer: list[Restored] = []

    def overtaken(rows: Any) -> Any:
        if not newer:
            with monkeypatch.context() as undisturbed:
                undisturbed.setattr(seeding, "_as_messages", list)
                newer.append(restore.run())
        return list(rows)

    monkeypatch.setattr(seeding, "_as_messages", overtaken)
    with pytest.raises(TaskFailure, match="Fenced"):
        list(restore.task()([units_of([restore.move])]))
    assert newer[0].seeded > 0
    restore.assert_equal_to_a_full_copy()


# In `make test`, test_restore_refused_snapshots.py has the same without `spark-submit`, by the task of the job.
@pytest.mark.slow
def test_the_job_of_an_expansion_says_what_it_has_read_and_what_it_could_not_use(
    world: SnapshotWorld, restore: SeededRestore, tmp_path: Path
) -> None:
    """By ``spark-submit``, as the DAG's ``restore`` runs. The newest file of one partition is damaged."""
    world.take(BEFORE)
    world.take(NEWEST)
    restore.files(NEWEST)[0].write_bytes(b"")
    control = begin(restore.connection, restore.plan)
    with submitted(
        restore.connection, tmp_path, "restore", restore.plan, "--stage", "1", "--snapshots", str(world.directory)
    ) as job:
        assert job.result() == 0, job.text()[-4000:]
    result = control.read().results["restore/1"]
    assert result.state == "done"
    assert 0 < result.seeded < result.records < len(world.orders)
    assert result.detail.startswith(
        f"{result.records - result.seeded} records read, {result.seeded} rows of snapshots; 1 snapshots not used"
    )
    assert f"not begun with {NEWEST}" in job.text()
    assert len(result.partitions) == PARTITIONS
    restore.assert_equal_to_a_full_copy()
