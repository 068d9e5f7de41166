"""What ``keep_days`` deletes: every day of the application that is too old, and nothing else."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import cast

import pytest
from kafka_rescale.core.snapshots.day import DAY_MS, SnapshotDay
from kafka_rescale.core.snapshots.request import SnapshotRequest
from kafka_rescale.core.snapshots.source import SnapshotSource
from kafka_rescale.spark.jobs.job import Job
from kafka_rescale.spark.snapshots.build import SnapshotBuild
from kafka_rescale.spark.snapshots.files import MANIFEST, StoreDirectory

from tests.support.snapshot_days import DAY, ENTRIES, STORE, complete_days, manifest_of, written

APPLICATION = "orders-app"
KEEP_DAYS = 2
KEPT, OLD, OLDER = DAY.minus(1), DAY.minus(KEEP_DAYS), DAY.minus(KEEP_DAYS + 1)


@pytest.fixture
def directory(tmp_path: Path) -> StoreDirectory:
    """Two days that are kept, and two that are too old."""
    directory = StoreDirectory(str(tmp_path), APPLICATION, STORE.name)
    for day in (DAY, KEPT, OLD, OLDER):
        written(directory, day, ENTRIES)
    return directory


def place(directory: StoreDirectory, day: SnapshotDay) -> Path:
    return Path(directory.uri) / f"date={day}"


def expire(directory: StoreDirectory) -> set[SnapshotDay]:
    """Expire days as a run does when it has published its day."""
    request = SnapshotRequest(
        application=APPLICATION,
        date=str(DAY),
        location=directory.location,
        grace_ms=0,
        keep_days=KEEP_DAYS,
        stores=(STORE,),
    )
    return SnapshotBuild(cast(Job, None), request, SnapshotSource(APPLICATION), None).expire()


def last_written(draft: Path, ago_ms: int) -> None:
    """Let a draft look as if nothing had been written into it for so long."""
    at = time.time() - ago_ms / 1000
    for path in (*draft.iterdir(), draft):
        os.utime(path, (at, at))


def test_days_that_are_too_old_are_deleted(directory: StoreDirectory) -> None:
    assert expire(directory) == {OLD, OLDER}
    assert complete_days(directory) == [DAY, KEPT]
    assert sorted(Path(directory.uri).iterdir()) == [place(directory, KEPT), place(directory, DAY)]


@pytest.mark.parametrize("left", ["rows", "half a manifest", "some rows"])
def test_what_a_killed_run_has_left_of_a_day_is_deleted(directory: StoreDirectory, left: str) -> None:
    """It was killed after it had deleted the manifest. The rows stayed, and pandas read them."""
    manifest = place(directory, OLD) / MANIFEST
    if left == "half a manifest":
        manifest.write_text(manifest.read_text()[:10])
    elif left == "some rows":
        next(place(directory, OLD).glob("*.parquet")).unlink()
    else:
        manifest.rename(manifest.with_name(f"{MANIFEST}.new"))
    assert expire(directory) == {OLD, OLDER}
    assert not place(directory, OLD).exists()


def test_days_of_a_store_that_is_no_longer_declared_are_deleted(directory: StoreDirectory) -> None:
    gone = StoreDirectory(directory.location, APPLICATION, "gone")
    for day in (KEPT, OLD):
        draft = gone.begin(day, "x")
        gone.publish(draft, manifest_of(day, store=STORE.model_copy(update={"name": "gone"})))
    assert expire(directory) == {OLD, OLDER}
    assert complete_days(gone) == [KEPT]


def test_a_day_that_is_kept_stays_also_without_its_manifest(directory: StoreDirectory) -> None:
    """A run may be about to write it."""
    (place(directory, KEPT) / MANIFEST).unlink()
    expire(directory)
    assert place(directory, KEPT).exists()


@pytest.mark.parametrize("has_manifest", [True, False])
def test_a_day_that_a_run_may_be_writing_stays_and_is_named(
    directory: StoreDirectory, has_manifest: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    draft = directory.begin(OLD, "other")
    if not has_manifest:
        (place(directory, OLD) / MANIFEST).unlink()
    assert expire(directory) == {OLDER}
    assert place(directory, OLD).exists()
    assert (Path(directory.uri) / draft).exists()
    assert f"not deleted: {directory.uri}/{draft}" in capsys.readouterr().out


@pytest.mark.parametrize("has_rows", [True, False])
def test_an_abandoned_draft_of_a_day_that_is_too_old_is_deleted_with_its_day(
    directory: StoreDirectory, has_rows: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """No run of that day may begin any more, so no run would ever delete the draft."""
    draft = Path(directory.uri) / directory.begin(OLD, "killed")
    if has_rows:
        (draft / "part-00000-0123456789abcdef.parquet").touch()
    last_written(draft, DAY_MS * 7 + DAY_MS // 24)
    assert expire(directory) == {OLD, OLDER}
    assert not draft.exists()
    assert not place(directory, OLD).exists()
    assert "not deleted" not in capsys.readouterr().out


def test_a_draft_into_which_something_was_written_this_week_stays(directory: StoreDirectory) -> None:
    draft = Path(directory.uri) / directory.begin(OLD, "slow")
    last_written(draft, DAY_MS * 30)
    (draft / "part-00000-0123456789abcdef.parquet").touch()
    os.utime(draft, (0, 0))
    assert expire(directory) == {OLDER}
    assert draft.exists()


def test_an_abandoned_draft_of_a_day_that_is_kept_stays_for_the_run_of_that_day(directory: StoreDirectory) -> None:
    draft = Path(directory.uri) / directory.begin(KEPT, "killed")
    last_written(draft, DAY_MS * 30)
    expire(directory)
    assert draft.exists()


def test_what_is_not_ours_stays(directory: StoreDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    """Names that are no dates, another application, a copy of a store, files beside ours, and files alone."""
    base, old = Path(directory.location), place(directory, OLD)
    others = [
        base / APPLICATION / STORE.name / f"date={OLD}.bak",
        base / APPLICATION / STORE.name / f"date={str(OLD).replace('-', '')}",
        base / APPLICATION / STORE.name / f"_draft-{OLD}.bak",
        base / APPLICATION / STORE.name / "kept" / f"date={OLD}",
        base / APPLICATION / f"date={OLD}",
        base / APPLICATION / "copy of totals" / f"date={OLD}",
        base / f"{APPLICATION}-2" / STORE.name / f"date={OLD}",
        base / f"date={OLD}",
    ]
    for other in others:
        shutil.copytree(old, other)
    theirs = base / APPLICATION / "theirs" / f"date={OLD}"
    theirs.mkdir(parents=True)
    (theirs / "report.csv").touch()
    (base / APPLICATION / "a file").touch()
    (base / APPLICATION / STORE.name / f"date={OLDER.minus(1)}").touch()
    before = sorted(
        p for p in base.rglob("*") if old not in p.parents and place(directory, OLDER) not in p.parents
    )
    assert expire(directory) == {OLD, OLDER}
    assert sorted(base.rglob("*")) == [p for p in before if p not in {old, place(directory, OLDER)}]
    out = capsys.readouterr().out
    for left in (theirs, base / APPLICATION / "copy of totals" / f"date={OLD}"):
        assert f"not deleted: {left}" in out


def test_without_a_complete_day_nothing_is_deleted(directory: StoreDirectory) -> None:
    for day in (DAY, KEPT, OLD, OLDER):
        (place(directory, day) / MANIFEST).unlink()
    assert expire(directory) == set()
    assert len(list(Path(directory.uri).iterdir())) == 4
