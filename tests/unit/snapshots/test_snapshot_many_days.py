"""A night asks a location as little after years of days as after a week."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from kafka_rescale.core.snapshots.manifest import CANDIDATES, PartitionSnapshot
from kafka_rescale.core.snapshots.request import SnapshotRequest
from kafka_rescale.core.snapshots.rows import SnapshotRule
from kafka_rescale.core.snapshots.source import SnapshotSource
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.spark.jobs.job import Job
from kafka_rescale.spark.snapshots import files as snapshot_files
from kafka_rescale.spark.snapshots import seed as snapshot_seed
from kafka_rescale.spark.snapshots.build import SnapshotBuild
from kafka_rescale.spark.snapshots.files import StoreDirectory
from kafka_rescale.spark.snapshots.seed import candidates_for
from pyarrow import fs

from tests.support.snapshot_days import DAY, STORE, manifest_of
from tests.unit.snapshots.test_snapshot_seed import APPLICATION, MOVE, TOPIC, Admin

NOWHERE = KafkaConnection({"bootstrap.servers": "none"})
PARTITIONS = 10
WIDE = replace(TOPIC, partitions=PARTITIONS)


class Counted:
    """A local file system that counts what it is asked for."""

    def __init__(self, asked: Counter[str]) -> None:
        self.system, self.asked = fs.LocalFileSystem(), asked

    def __getattr__(self, name: str) -> Any:
        def asked(first: Any, *rest: Any, **named: Any) -> Any:
            self.asked[name] += len(first) if isinstance(first, list) else 1
            return getattr(self.system, name)(first, *rest, **named)

        return asked


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Counter[str]:
    counter: Counter[str] = Counter()
    monkeypatch.setattr(
        snapshot_files, "arrow_place", lambda _, location, below: (Counted(counter), f"{location}/{below}")
    )
    monkeypatch.setattr(snapshot_seed, "ClusterAdmin", Admin)
    return counter


def write(location: Path, days: int) -> None:
    """Write days without rows, from the day before on."""
    directory = StoreDirectory(str(location), APPLICATION, STORE.name)
    for number in range(1, days + 1):
        draft, known = directory.begin(DAY.minus(number), "x"), []
        for p in range(PARTITIONS):
            (Path(directory.uri) / draft / f"part-{p}").touch()
            known.append(PartitionSnapshot(partition=p, position=1, end=1, rows=1, file=f"part-{p}"))
        directory.publish(draft, manifest_of(DAY.minus(number), *known))


def build_of(location: Path, keep_days: int | None) -> SnapshotBuild:
    """The job of the newest day."""
    request = SnapshotRequest(
        application=APPLICATION,
        date=str(DAY),
        location=str(location),
        grace_ms=0,
        keep_days=keep_days,
        stores=(STORE,),
    )
    return SnapshotBuild(cast(Job, None), request, SnapshotSource(APPLICATION), None)


def a_night(location: Path, keep_days: int | None) -> None:
    """What a run asks before it reads, and behind it; and how a restore begins."""
    build = build_of(location, keep_days)
    build._assert_kept()
    directory = StoreDirectory(str(location), APPLICATION, STORE.name)
    bases = build._bases(directory, STORE, WIDE, SnapshotRule(DAY.end_ms), None)
    assert [base.day for base in bases] == [DAY.minus(1), DAY.minus(2), DAY.minus(3)]
    assert build.expire() == set()
    candidates_for(NOWHERE, str(location), APPLICATION, [MOVE])


@pytest.mark.parametrize("keep_days", [None, 1000])
def test_what_a_night_asks_does_not_grow_with_the_days_that_are_kept(
    tmp_path: Path, asked: Counter[str], keep_days: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Admin, "describe_topics", lambda *_: {WIDE.name: WIDE})
    counts = []
    for days in (CANDIDATES, 100):
        write(tmp_path / str(days), days)
        asked.clear()
        a_night(tmp_path / str(days), keep_days)
        counts.append(dict(asked))
    assert counts[0] == counts[1]


def test_days_of_another_topic_are_not_asked_for_their_files(tmp_path: Path, asked: Counter[str]) -> None:
    write(tmp_path, 20)
    asked.clear()
    topic = replace(WIDE, topic_id="made anew")
    directory = StoreDirectory(str(tmp_path), APPLICATION, STORE.name)
    assert build_of(tmp_path, None)._bases(directory, STORE, topic, SnapshotRule(DAY.end_ms), None) == ()
    assert asked["get_file_info"] == 1
