"""The snapshots with which a restore may begin, before it looks at any log."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kafka_rescale.core.cluster import TopicDescription, TopicPartition
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.core.snapshots.day import SnapshotDay
from kafka_rescale.core.snapshots.manifest import CANDIDATES, PartitionSnapshot
from kafka_rescale.core.snapshots.request import StoreRequest
from kafka_rescale.core.snapshots.rows import Entry
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading import log_batches
from kafka_rescale.spark.snapshots import seed as snapshot_seed
from kafka_rescale.spark.snapshots.columns import table_of
from kafka_rescale.spark.snapshots.files import MANIFEST, StoreDirectory
from kafka_rescale.spark.snapshots.seed import SnapshotSeed, candidates_for, seeding_of

from tests.support.snapshot_days import AT_MS, DAY, STORE, manifest_of

APPLICATION = "orders-app"
PLAIN = StoreRequest(name="totals", store_type="key-value")
NOWHERE = KafkaConnection({"bootstrap.servers": "none"})
TOPIC = TopicDescription("orders-app-g2-totals-changelog", 1, 1, {"cleanup.policy": "compact"}, topic_id="x")
MOVE = Move(
    kind=MoveKind.CHANGELOG,
    source=TOPIC.name,
    target="orders-app-g3-totals-changelog",
    store=STORE.name,
    store_type=STORE.store_type,
    source_partitions=1,
    target_partitions=2,
)


class Admin:
    """Knows the running changelog."""

    def __init__(self, _: KafkaConnection) -> None: ...

    def describe_topics(self, _: list[str]) -> dict[str, TopicDescription]:
        """Return the running changelog."""
        return {TOPIC.name: TOPIC}


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        pytest.param({}, True, id="as they are taken now"),
        pytest.param({"format": 1}, False, id="a format whose days may lack living keys"),
        pytest.param({"kept_ms": 86_400_000}, False, id="taken while the topic still deleted by age"),
        pytest.param({"by_age": True}, False, id="with rows whose records the topic deleted by age"),
        pytest.param({"topic_id": "y"}, False, id="another topic of this name"),
    ],
)
def test_only_days_that_hold_all_that_a_copy_would_are_begun_with(
    tmp_path: Path, changes: dict[str, Any], fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_seed, "ClusterAdmin", Admin)
    directory = StoreDirectory(str(tmp_path), APPLICATION, STORE.name)
    manifest = manifest_of(DAY, PartitionSnapshot(partition=0, position=10, end=10, rows=0))
    directory.publish(directory.begin(DAY, "x"), manifest.model_copy(update=changes))
    found = candidates_for(NOWHERE, str(tmp_path), APPLICATION, [MOVE])
    assert bool(found.by_source) is fits
    assert bool(found.remarks) is not fits


def published(location: Path, *days: SnapshotDay) -> Path:
    """Publish days without rows, and return the directory of the store."""
    directory = StoreDirectory(str(location), APPLICATION, STORE.name)
    for day in days:
        manifest = manifest_of(day, PartitionSnapshot(partition=0, position=10, end=10, rows=0))
        directory.publish(directory.begin(day, "x"), manifest)
    return Path(directory.uri)


def without_end(link: Path) -> None:
    """Replace a file or directory by a link to itself, which nothing can open."""
    shutil.rmtree(link) if link.is_dir() else link.unlink()
    link.symlink_to(link)


def test_what_is_no_day_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person has kept a copy of a day. A restore ended with advice about the schedule of a DAG."""
    monkeypatch.setattr(snapshot_seed, "ClusterAdmin", Admin)
    place = published(tmp_path, DAY)
    for name in (f"date={DAY}.bak", "date=20260106", "date="):
        shutil.copytree(place / f"date={DAY}", place / name)
    found = candidates_for(NOWHERE, str(tmp_path), APPLICATION, [MOVE])
    assert [seed.manifest.day for seed in found.by_source[TOPIC.name, 0]] == [DAY]
    assert found.remarks == []


def test_a_day_that_can_not_be_looked_at_costs_this_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_seed, "ClusterAdmin", Admin)
    place = published(tmp_path, DAY, DAY.minus(1))
    without_end(place / f"date={DAY}" / MANIFEST)
    found = candidates_for(NOWHERE, str(tmp_path), APPLICATION, [MOVE])
    assert [seed.manifest.day for seed in found.by_source[TOPIC.name, 0]] == [DAY.minus(1)]
    (remark,) = found.remarks
    assert remark.startswith(f"{TOPIC.name}: not begun with a snapshot that can't be read: ")
    assert f"date={DAY}/{MANIFEST}: found" in remark


def test_a_location_that_does_not_answer_is_asked_for_three_days_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_seed, "ClusterAdmin", Admin)
    days = [DAY.minus(n) for n in range(5)]
    place = published(tmp_path, *days)
    for day in days:
        without_end(place / f"date={day}" / MANIFEST)
    found = candidates_for(NOWHERE, str(tmp_path), APPLICATION, [MOVE])
    assert (found.by_source, len(found.remarks)) == ({}, CANDIDATES + 1)
    assert "read as a whole" in found.remarks[-1]


@pytest.mark.parametrize("kind", ["unreadable", "unknown"])
def test_trouble_at_the_location_of_snapshots_does_not_end_a_restore(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_seed, "ClusterAdmin", Admin)
    without_end(published(tmp_path, DAY))
    location = str(tmp_path) if kind == "unreadable" else "gopher://x/y"
    found = candidates_for(NOWHERE, location, APPLICATION, [MOVE])
    assert found.by_source == {}
    (remark,) = found.remarks
    assert remark.startswith(f"{TOPIC.name}: read as a whole, because its snapshots can't be looked at: ")


def seeds_of(
    location: Path, values: Sequence[bytes], partitions: int, *, with_checksums: bool
) -> dict[TopicPartition, tuple[SnapshotSeed, ...]]:
    """Seeds of partitions with these values; an earlier version wrote their pages without checksums."""
    directory = StoreDirectory(str(location), APPLICATION, PLAIN.name)
    draft, found = directory.begin(DAY, "x"), []
    for p in range(partitions):
        rows = table_of([Entry(f"{n:06}".encode(), v, AT_MS, n) for n, v in enumerate(values)], p, PLAIN)
        file = directory.write(draft, p, rows)
        if not with_checksums:
            content = io.BytesIO()
            pq.write_table(rows, content, compression="zstd")
            (location / APPLICATION / PLAIN.name / draft / file).unlink()
            file = f"part-{p:05d}-{hashlib.sha256(content.getvalue()).hexdigest()[:16]}.parquet"
            (location / APPLICATION / PLAIN.name / draft / file).write_bytes(content.getvalue())
        found.append(PartitionSnapshot(partition=p, position=len(values), end=len(values), rows=1, file=file))
    manifest = manifest_of(DAY, *found, store=PLAIN)
    directory.publish(draft, manifest)
    return {(TOPIC.name, p.partition): (SnapshotSeed(directory, manifest, p.file, p.position),) for p in found}


def file_of(seed: SnapshotSeed) -> Path:
    """The file with a seed's rows."""
    return Path(seed.directory.uri) / f"date={seed.manifest.day}" / seed.file


@pytest.fixture
def whole_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs that end at the seeds' positions, so that no broker is asked for what lies behind."""
    monkeypatch.setattr(log_batches, "log_batches", lambda *_: iter(()))


@pytest.mark.usefixtures("whole_logs")
@pytest.mark.parametrize("with_checksums", [True, False])
def test_neither_checking_nor_reading_holds_the_rows_of_a_partition(tmp_path: Path, with_checksums: bool) -> None:
    """Of one row group. Memory was held for every partition of a task at once."""
    values = [os.urandom(8_192) for _ in range(6_000)]
    seeds = seeds_of(tmp_path, values, 2, with_checksums=with_checksums)
    size = min(file_of(seed).stat().st_size for (seed,) in seeds.values())
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    seeding = seeding_of(NOWHERE, seeds, dict.fromkeys(seeds, len(values)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (set(seeding.seeds), seeding.refused) == (set(seeds), ())
    assert peak + pa.total_allocated_bytes() - before < size / 2
    for seed in seeding.seeds.values():
        found = []
        for batch in seed.batches():
            found += [row.value() for row in batch]
            assert pa.total_allocated_bytes() - before < 0.8 * size
        assert found == values
        assert pa.total_allocated_bytes() - before < size / 10


@pytest.mark.usefixtures("whole_logs")
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_file_that_is_harmed_behind_the_check_is_an_outage(tmp_path: Path, is_gone: bool) -> None:
    """The next attempt begins the copy anew, and finds the damage before it writes."""
    values = [os.urandom(100) for _ in range(1_000)]
    seeds = seeds_of(tmp_path, values, 1, with_checksums=True)
    ends = dict.fromkeys(seeds, len(values))
    (seed,) = seeding_of(NOWHERE, seeds, ends).seeds.values()
    file = file_of(next(iter(seeds.values()))[0])
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.unlink() if is_gone else file.write_bytes(content)
    with pytest.raises(Outage, match="a file that can't be read any more"):
        list(seed.batches())
    again = seeding_of(NOWHERE, seeds, ends)
    assert (again.seeds, len(again.refused)) == ({}, 1)
