"""The manifest of a snapshot: its contents for one store on one day. A day without its manifest does not count."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from kafka_rescale.core.snapshots.day import SnapshotDay
from kafka_rescale.core.snapshots.request import StoreRequest
from kafka_rescale.core.snapshots.rows import Entry, Headers, SnapshotRule
from kafka_rescale.core.snapshots.tail import Tail
from kafka_rescale.core.values import Value

FORMAT = 2
CANDIDATES = 3
"""How many days are tried before the whole log is read. If a day is damaged, the day before is nearly as good."""


class AheadRecord(Value):
    """A record that an earlier day has left out because it is dated ahead. Its bytes are in base64."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    key: bytes
    value: bytes | None = None
    timestamp_ms: int
    offset: int
    headers: Headers = ()

    @property
    def entry(self) -> Entry:
        """The record."""
        return Entry(self.key, self.value, self.timestamp_ms, self.offset, self.headers)


class PartitionSnapshot(Value):
    """One partition of one store.

    :param position: the next offset to read. A replay of the changelog from this offset on leads to every later
        state.
    :param end: the offset (exclusive) up to which the log was read for this day.
    :param file: the path below the day's directory. Empty if there are no rows.
    :param ahead: the records that the next day gets from here, in the order of their offsets.
    :param resume_at: the next offset that the next day reads in the log, beside these records. None if it is
        ``position``.
    """

    partition: int
    position: int
    end: int
    rows: int
    file: str = ""
    ahead: tuple[AheadRecord, ...] = Field(default=(), exclude_if=lambda records: not records)
    resume_at: int | None = Field(default=None, exclude_if=lambda offset: offset is None)

    @property
    def resumes_at(self) -> int:
        """The next offset that the next day reads in the log."""
        return self.position if self.resume_at is None else self.resume_at

    @classmethod
    def of(cls, partition: int, tail: Tail, end: int, rows: int, file: str) -> PartitionSnapshot:
        """Return the snapshot of a partition whose log was read for a day.

        :param end: exclusive; the day goes up to there.
        """
        ahead = tuple(AheadRecord.model_validate(entry._asdict()) for entry in tail.ahead)
        resume_at = end if tail.resume_at is None else tail.resume_at
        return cls(
            partition=partition,
            position=end if tail.position is None else tail.position,
            end=end,
            rows=rows,
            file=file,
            ahead=ahead,
            resume_at=resume_at if ahead else None,
        )


class Manifest(Value):
    """One store on one day.

    :param generation: ``application.id`` of the generation whose changelog was read.
    :param topic_id: the id of that changelog. A topic that was deleted and made anew has other offsets.
    :param kept_ms: a part of the rule that has chosen the rows (``SnapshotRule``). ``grace_ms`` and
        ``versions_ms`` are further parts of it.
    :param by_age: whether the topic deleted by age then, or on an earlier day. The rows may have entries that the
        topic does not have any more.
    :param keeps_deletions: of a versioned store, whether a deletion is kept as long as an older version may still
        come. A day of before 29 November 2026 has dropped such deletions, or has a version that had come back.
    """

    format: int = FORMAT
    application: str
    generation: str
    date: str
    end_ms: int
    grace_ms: int
    kept_ms: int | None = None
    versions_ms: int | None = None
    by_age: bool = Field(default=False, exclude_if=lambda deleted: not deleted)
    keeps_deletions: bool = Field(default=False, exclude_if=lambda kept: not kept)
    store: StoreRequest
    topic: str
    topic_id: str
    partitions: tuple[PartitionSnapshot, ...]

    @property
    def day(self) -> SnapshotDay:
        """The day of the snapshot."""
        return SnapshotDay.named(self.date)

    @property
    def rows(self) -> int:
        """The number of rows of all partitions."""
        return sum(p.rows for p in self.partitions)

    def of_partition(self, partition: int) -> PartitionSnapshot | None:
        """Return one partition of the day; None if the day does not have it."""
        return next((p for p in self.partitions if p.partition == partition), None)

    def describes(self, topic: str, topic_id: str, store: StoreRequest, rule: SnapshotRule) -> bool:
        """Return whether its offsets and rows mean the same as those of a new snapshot, with as much history."""
        same = (self.topic, self.topic_id, self.grace_ms, self.format) == (topic, topic_id, rule.grace_ms, FORMAT)
        same = same and (self.versions_ms is None or self.keeps_deletions)
        has_all = _reaches(self.kept_ms, rule.kept_ms) and _reaches(self.versions_ms, rule.versions_ms)
        return same and has_all and self.store.same_rows(store)


def _reaches(kept_ms: int | None, wanted_ms: int | None) -> bool:
    """Return whether a kept history is at least as long as the wanted history. None means the whole history."""
    return kept_ms is None or (wanted_ms is not None and wanted_ms <= kept_ms)


def base_for(manifest: Manifest, pinned: Manifest | None) -> bool:
    """Return whether a day can be built from the snapshot of an earlier day.

    :param manifest: the manifest of the earlier day.
    :param pinned: the manifest of the day itself, if the day is built again up to the same ends. If the log was
        read further for the earlier day, this would bring in records that the day did not have.
    """
    if pinned is None:
        return True
    ends = {p.partition: p.end for p in pinned.partitions}
    return manifest.end_ms < pinned.end_ms and all(p.end <= ends.get(p.partition, 0) for p in manifest.partitions)
