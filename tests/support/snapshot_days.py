"""Days of one store, written as the snapshot job writes them."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from kafka_rescale.core.snapshots.day import SnapshotDay
from kafka_rescale.core.snapshots.manifest import Manifest, PartitionSnapshot
from kafka_rescale.core.snapshots.request import StoreRequest
from kafka_rescale.core.snapshots.rows import Entry
from kafka_rescale.spark.snapshots.columns import table_of
from kafka_rescale.spark.snapshots.files import StoreDirectory

DAY = SnapshotDay.named("2026-01-05")
STORE = StoreRequest(name="totals", store_type="timestamped-key-value", key="string", value="long")
AT_MS = DAY.end_ms - 1_000
ENTRIES = [
    Entry(b"b", struct.pack(">q", 2), AT_MS, 7, (("trace", b"x"), ("empty", None))),
    Entry(b"a", struct.pack(">q", 1), AT_MS + 5, 9),
]


def manifest_of(day: SnapshotDay, *partitions: PartitionSnapshot, store: StoreRequest = STORE) -> Manifest:
    """The manifest of a day."""
    return Manifest(
        application="orders-app",
        generation="orders-app-g2",
        date=str(day),
        end_ms=day.end_ms,
        grace_ms=0,
        store=store,
        topic="orders-app-g2-totals-changelog",
        topic_id="x",
        partitions=partitions,
    )


def written(directory: StoreDirectory, day: SnapshotDay, entries: Iterable[Entry], token: str = "1") -> Manifest:
    """Write a day with one partition, and return its manifest."""
    draft = directory.begin(day, token)
    rows = table_of(entries, 3, STORE)
    file = directory.write(draft, 3, rows)
    manifest = manifest_of(day, PartitionSnapshot(partition=3, position=10, end=10, rows=len(rows), file=file))
    directory.publish(draft, manifest)
    return manifest


def complete_days(directory: StoreDirectory) -> list[SnapshotDay]:
    """The days that count, the newest first."""
    return [manifest.day for manifest in directory.newest(lambda _: True, tell=lambda _: None, count=100)]
