"""A day is built on the newest earlier day that can be read: damage costs reading, not all later days."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.errors import InvalidInput, Unreadable
from kafka_rescale.core.snapshots.day import DAY_MS, SnapshotDay
from kafka_rescale.core.snapshots.manifest import Manifest, PartitionSnapshot
from kafka_rescale.core.snapshots.request import SnapshotRequest, StoreRequest
from kafka_rescale.core.snapshots.rows import Entry, SnapshotRule
from kafka_rescale.core.snapshots.source import SnapshotSource
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.spark.jobs.job import Job
from kafka_rescale.spark.snapshots import build as snapshot_build
from kafka_rescale.spark.snapshots.build import SnapshotBuild
from kafka_rescale.spark.snapshots.columns import table_of
from kafka_rescale.spark.snapshots.files import MANIFEST, StoreDirectory
from kafka_rescale.spark.snapshots.partition import PartitionResult, StoreWork, Unit

from tests.support.snapshot_days import DAY, manifest_of
from tests.support.snapshot_world import InProcess
from tests.unit.snapshots.test_snapshot_partition import CleanedMeanwhile

STORE = StoreRequest(name="totals", store_type="key-value")
TOPIC = TopicDescription(manifest_of(DAY).topic, 1, 1, {"cleanup.policy": "compact"}, topic_id="x")
BASES = (DAY.minus(1), DAY.minus(2))
LOG = [Entry(b"%d" % n, b"v", DAY.end_ms - (9 - n // 2) * DAY_MS // 4, n) for n in range(20)]
"""Two records at a time, a quarter of a day apart: the last pair belongs to the next day."""


@pytest.fixture
def directory(tmp_path: Path) -> StoreDirectory:
    """Two earlier days of the log."""
    directory = StoreDirectory(str(tmp_path), "orders-app", STORE.name)
    for day in BASES:
        rows = [e for e in LOG if e.timestamp_ms < day.end_ms]
        draft = directory.begin(day, "x")
        file = directory.write(draft, 0, table_of(rows, 0, STORE))
        known = PartitionSnapshot(partition=0, position=len(rows), end=len(rows), rows=len(rows), file=file)
        directory.publish(draft, manifest_of(day, known, store=STORE))
    return directory


def build(
    directory: StoreDirectory, bases: Sequence[Manifest], log: Sequence[Entry] = LOG, newest: int = 0
) -> PartitionResult:
    """Build the day on top of earlier days."""
    work = StoreWork(
        directory=directory,
        draft=directory.begin(DAY, "x"),
        topic="orders-app-totals-changelog",
        topic_id="x",
        store=STORE,
        rule=SnapshotRule(DAY.end_ms),
        begins={0: 0},
        ends={0: len(LOG)},
        bases=tuple(bases),
    )
    partition = CleanedMeanwhile(KafkaConnection({"bootstrap.servers": "none"}), work, 0)
    partition.log, partition.newest = log, newest
    found = partition.build()
    if found.snapshot is not None:
        directory.publish(work.draft, manifest_of(DAY, found.snapshot, store=STORE))
    return found


def known(directory: StoreDirectory) -> list[Manifest]:
    """The manifests of the earlier days, the newest first."""
    return [m for day in BASES if (m := directory.manifest(day))]


def file_of(directory: StoreDirectory, day: SnapshotDay) -> Path:
    """The file of an earlier day."""
    (file,) = (Path(directory.uri) / f"date={day}").glob("*.parquet")
    return file


def spoil(file: Path) -> None:
    """Change a byte in the middle."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


def test_a_day_is_built_on_the_newest_day_before(directory: StoreDirectory) -> None:
    found = build(directory, known(directory))
    assert (found.read, found.unused) == (8, ())


@pytest.mark.parametrize("damage", [spoil, Path.unlink])
def test_where_the_newest_day_is_damaged_or_replaced_the_day_before_is_the_base(
    directory: StoreDirectory, damage: Callable[[Path], None]
) -> None:
    """If its day is built again at the same time, by another serde, its files have other names."""
    bases = known(directory)
    damage(file_of(directory, BASES[0]))
    found = build(directory, bases)
    assert found.read == 16
    (line,) = found.unused
    assert f"orders-app-totals-changelog-0: not built on {BASES[0]}" in line
    assert found.snapshot is not None
    rows = directory.read(DAY, found.snapshot.file)
    assert set(rows["key"].to_pylist()) == {e.key for e in LOG[:18]}


def test_where_every_earlier_day_is_damaged_the_log_is_read(directory: StoreDirectory) -> None:
    bases = known(directory)
    for day in BASES:
        spoil(file_of(directory, day))
    found = build(directory, bases)
    assert (found.read, len(found.unused)) == (18, 2)
    assert found.snapshot is not None
    assert found.snapshot.rows == 18


def refuses(stores: Mapping[str, StoreWork]) -> Callable[[Iterable[list[Unit]]], Iterator[PartitionResult]]:
    """The work on partitions whose log does not tell the state."""
    return lambda lists: (PartitionResult(unit, None, 0) for units in lists for unit in units)


def test_a_day_whose_manifest_can_not_be_read_is_named_and_the_days_before_it_are_bases(
    directory: StoreDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the log doesn't tell the state, that is no refusal: Airflow tries again, and the location may answer."""
    manifest = Path(directory.uri) / f"date={BASES[0]}" / MANIFEST
    manifest.unlink()
    manifest.symlink_to(manifest)
    asked = SnapshotRequest(
        application="orders-app", date=str(DAY), location=directory.location, grace_ms=0, stores=(STORE,)
    )
    job = cast(Job, SimpleNamespace(connection=None, run_beside=lambda action, _: action()))
    attempt = SnapshotBuild(job, asked, SnapshotSource("orders-app-g2"), None)
    work = attempt._work(STORE, TOPIC, {0: 0}, {0: len(LOG)})
    assert [base.day for base in work.bases] == [BASES[1]]
    assert f"date={BASES[0]}/{MANIFEST}: found" in capsys.readouterr().out
    monkeypatch.setattr(snapshot_build, "BuildPartitions", lambda _, stores: refuses(stores))
    with pytest.raises(Unreadable, match=f"date={BASES[0]}"):
        attempt._build(cast(Any, InProcess()), {STORE.name: work})


def test_a_day_whose_own_manifest_can_not_be_read_is_built_again(directory: StoreDirectory) -> None:
    manifest = Path(directory.uri) / f"date={BASES[0]}" / MANIFEST
    manifest.unlink()
    manifest.symlink_to(manifest)
    asked = SnapshotRequest(
        application="orders-app", date=str(BASES[0]), location=directory.location, grace_ms=0, stores=(STORE,)
    )
    attempt = SnapshotBuild(cast(Any, None), asked, SnapshotSource("orders-app-g2"), None)
    work = attempt._work(STORE, TOPIC, {0: 0}, {0: len(LOG)})
    assert ([base.day for base in work.bases], work.ends) == ([BASES[1]], {0: len(LOG)})
    directory.publish(work.draft, manifest_of(BASES[0], store=STORE))
    assert directory.manifest(BASES[0]) is not None


@pytest.mark.parametrize(("damage", "kind"), [(spoil, InvalidInput), (Path.unlink, Unreadable)])
def test_where_neither_a_day_nor_the_log_tells_the_state_the_error_is_about_the_newest_day(
    directory: StoreDirectory, damage: Callable[[Path], None], kind: type[InvalidInput]
) -> None:
    """Not about the log: the damaged day can be built again on the day before. Airflow retries what is gone."""
    bases = known(directory)[:1]
    damage(file_of(directory, BASES[0]))
    with pytest.raises(InvalidInput, match=f"date={BASES[0]}.*again, without `from_scratch`") as refused:
        build(directory, bases, [e for e in LOG if e.offset != 3], newest=19)
    assert type(refused.value) is kind


def test_days_of_a_versioned_store_by_the_earlier_rule_are_not_built_on_and_the_next_day_ends_the_chain(
    tmp_path: Path,
) -> None:
    """Each of them has the wrong versions of the first: the log has to be read once."""
    location, rule = str(tmp_path), SnapshotRule(DAY.end_ms, versions_ms=DAY_MS)
    store = STORE.model_copy(update={"store_type": "versioned"})
    directory = StoreDirectory(location, "orders-app", store.name)
    for day in BASES:
        earlier = manifest_of(day, store=store).model_copy(update={"versions_ms": DAY_MS})
        directory.publish(directory.begin(day, "x"), earlier)

    def of(day: SnapshotDay) -> SnapshotBuild:
        asked = SnapshotRequest(
            application="orders-app", date=str(day), location=location, grace_ms=0, stores=(store,)
        )
        return SnapshotBuild(cast(Any, None), asked, SnapshotSource("orders-app-g2"), None)

    assert of(DAY)._bases(directory, store, TOPIC, rule, None) == ()
    work = replace(of(DAY)._work(store, TOPIC, {0: 0}, {0: 0}), rule=rule)
    of(DAY)._publish(work, [])
    following = SnapshotDay.named("2026-01-06")
    assert [base.day for base in of(following)._bases(directory, store, TOPIC, rule, None)] == [DAY]
