"""What a snapshot of one store on one day consists of; a day without its manifest is none."""

from __future__ import annotations

from kafka_rescale.core.snapshot_day import SnapshotDay
from kafka_rescale.core.snapshot_request import StoreRequest
from kafka_rescale.core.values import Value

FORMAT = 1


class PartitionSnapshot(Value):
    """One partition of one store.

    :param position: the next offset to read: replaying the changelog from here on leads to every later state.
    :param end: offset (exclusive) up to which the log was read for this day.
    :param file: below the day's directory; empty if there are no rows.
    """

    partition: int
    position: int
    end: int
    rows: int
    file: str = ""


class Manifest(Value):
    """One store on one day.

    :param generation: ``application.id`` of the generation whose changelog was read.
    :param topic_id: of that changelog; one that was made anew has other offsets.
    """

    format: int = FORMAT
    application: str
    generation: str
    date: str
    end_ms: int
    grace_ms: int
    store: StoreRequest
    topic: str
    topic_id: str
    partitions: tuple[PartitionSnapshot, ...]

    @property
    def day(self) -> SnapshotDay:
        """The day that it is about."""
        return SnapshotDay.named(self.date)

    @property
    def rows(self) -> int:
        """Rows of all partitions."""
        return sum(p.rows for p in self.partitions)

    def describes(self, topic: str, topic_id: str, store: StoreRequest, grace_ms: int) -> bool:
        """Return whether its offsets and rows mean the same as a new snapshot's."""
        same = (self.topic, self.topic_id, self.grace_ms, self.format) == (topic, topic_id, grace_ms, FORMAT)
        return same and self.store.same_rows(store)


def base_for(manifest: Manifest, pinned: Manifest | None) -> bool:
    """Return whether a day can be built from an earlier one.

    :param pinned: the day's own manifest, up to whose ends it is to be built again: an earlier day that has looked
        further would bring along what that day had not seen.
    """
    if pinned is None:
        return True
    ends = {p.partition: p.end for p in pinned.partitions}
    return manifest.end_ms < pinned.end_ms and all(p.end <= ends.get(p.partition, 0) for p in manifest.partitions)
