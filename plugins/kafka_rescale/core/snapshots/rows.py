"""The state of a changelog partition as of a point in time, and the changes that a tail of its log makes.

The state as of ``end_ms`` has for each key the last record, in the order of the log, among the records with a
timestamp before ``end_ms``. The log is read until a record's timestamp is ``end_ms`` plus ``grace_ms`` or later.
Records behind this record are too late, whatever their timestamps are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.formats.changelog_formats import ChangelogFormat, Content
from kafka_rescale.core.formats.record_limits import UNLIMITED, compaction_lag_ms, retention_ms
from kafka_rescale.core.snapshots.day import DAY_MS

ADDITIONAL_RETENTION_MS = DAY_MS
"""``windowstore.changelog.additional.retention.ms``: a changelog keeps its records longer than the store does."""

CLOSERS = 1_000
"""How many records beyond the grace, with no record of the day among them, show that the day is over. A single one
may have a wrong time: the clock of a device may be a year ahead."""

AHEAD_BYTES = 1024 * 1024
"""How much of the records that are dated ahead a manifest keeps, of all partitions together. Each job has several
manifests in memory, also the restore that begins with a snapshot."""

Headers = tuple[tuple[str, bytes | None], ...]
Identity = bytes | tuple[bytes, int]


class Entry(NamedTuple):
    """One changelog record. ``value`` is None for a tombstone."""

    key: bytes
    value: bytes | None
    timestamp_ms: int
    offset: int
    headers: Headers = ()


@dataclass(frozen=True)
class SnapshotRule:
    """The rule that decides which records belong to a state.

    :param end_ms: the time of the state, exclusive.
    :param grace_ms: how far records may be out of order.
    :param kept_ms: how long an entry lives after its timestamp. None if the store does not delete by age.
    :param versions_ms: how long a version is kept after the next version. None if the store is not versioned.
    :param closers: as ``CLOSERS``.
    :param ahead_bytes: how much of the records that are dated ahead a manifest keeps for one partition.
    """

    end_ms: int
    grace_ms: int = 0
    kept_ms: int | None = None
    versions_ms: int | None = None
    closers: int = CLOSERS
    ahead_bytes: int = AHEAD_BYTES

    def identity(self, key: bytes, timestamp_ms: int) -> Identity:
        """Return the identity of an entry. A later record with the same identity replaces the entry."""
        return key if self.versions_ms is None else (key, timestamp_ms)

    @property
    def history_ms(self) -> int | None:
        """The time before the end of the day for which the log has to be whole.

        None if it is not known: while an expansion holds compaction, the lag of before can't be seen.
        """
        return None if self.versions_ms == UNLIMITED else self.versions_ms or 0


def rule_of(topic: TopicDescription, fmt: ChangelogFormat, *, end_ms: int, grace_ms: int) -> SnapshotRule:
    """Return the rule for a store.

    :param topic: the changelog of the store.
    """
    # Kafka Streams itself never deletes entries of other stores by age, whatever their topics do.
    deleted_ms = retention_ms(topic) if fmt.expires else None
    if deleted_ms is not None and deleted_ms > ADDITIONAL_RETENTION_MS:
        deleted_ms -= ADDITIONAL_RETENTION_MS
    versions_ms = compaction_lag_ms(topic) if fmt.has(Content.VERSIONS) else None
    of_partition = AHEAD_BYTES // max(1, topic.partitions)
    return SnapshotRule(end_ms, grace_ms, deleted_ms, versions_ms, ahead_bytes=of_partition)


def retained(
    keys: Sequence[bytes], timestamps: Sequence[int], tombstones: Sequence[bool], rule: SnapshotRule
) -> list[bool]:
    """Return for each row whether it is part of the state. The rows are the last records of all identities.

    :param keys: the keys in ascending order. The rows of one key are in the order of their timestamps.
    """
    if rule.versions_ms is not None:
        return _versions(keys, timestamps, tombstones, rule.end_ms - rule.versions_ms, rule.versions_ms)
    if rule.kept_ms is None:
        return [not gone for gone in tombstones]
    since = rule.end_ms - rule.kept_ms
    return [not gone and at >= since for gone, at in zip(tombstones, timestamps, strict=True)]


def _versions(
    keys: Sequence[bytes], timestamps: Sequence[int], tombstones: Sequence[bool], since: int, versions_ms: int
) -> list[bool]:
    """Keep the versions after ``since``, and each key's version that was valid then, if it is no deletion.

    A deletion that was valid then is kept as long as an older version of its key may still arrive. Without it,
    such a version would be valid. A versioned store takes a version unless it is older than the history before
    the newest record, and the time of a partition without records stands still (``RocksDBVersionedStore.put``).
    """
    too_late = max(timestamps, default=0) - versions_ms
    kept = []
    for i, (key, at) in enumerate(zip(keys, timestamps, strict=True)):
        is_followed = i + 1 < len(keys) and keys[i + 1] == key and timestamps[i + 1] <= since
        kept.append(at > since or (not is_followed and (not tombstones[i] or at > too_late)))
    return kept
