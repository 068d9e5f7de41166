"""The state of a changelog partition as of a point in time, and the changes by a tail of its log.

As of ``end_ms`` means: per key the last record, in the order of the log, among records with a timestamp before
``end_ms``. The log is read until a record's timestamp is ``grace_ms`` past that; records behind it are too late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.formats.changelog_formats import ChangelogFormat, Content
from kafka_rescale.core.formats.record_limits import compaction_lag_ms, retention_ms
from kafka_rescale.core.snapshots.day import DAY_MS

ADDITIONAL_RETENTION_MS = DAY_MS
"""``windowstore.changelog.additional.retention.ms``: a changelog keeps its records longer than the store."""

Headers = tuple[tuple[str, bytes | None], ...]
Identity = bytes | tuple[bytes, int]


class Entry(NamedTuple):
    """One changelog record; ``value`` is None for a tombstone."""

    key: bytes
    value: bytes | None
    timestamp_ms: int
    offset: int
    headers: Headers = ()


@dataclass(frozen=True)
class SnapshotRule:
    """The rule that tells which records belong to a state.

    :param end_ms: exclusive.
    :param grace_ms: how far records may be out of order.
    :param kept_ms: of a changelog that deletes by age, how long an entry lives after its timestamp.
    :param versions_ms: of a versioned store, how long a version is kept after the next one; None for others.
    """

    end_ms: int
    grace_ms: int = 0
    kept_ms: int | None = None
    versions_ms: int | None = None

    def identity(self, key: bytes, timestamp_ms: int) -> Identity:
        """Return the identity of an entry: a later record with the same identity replaces it."""
        return key if self.versions_ms is None else (key, timestamp_ms)

    @property
    def history_ms(self) -> int:
        """How far before the end of the day the log has to be whole."""
        return self.versions_ms or 0


def rule_of(topic: TopicDescription, fmt: ChangelogFormat, *, end_ms: int, grace_ms: int) -> SnapshotRule:
    """Return the rule for a store.

    :param topic: its changelog.
    """
    deleted_ms = retention_ms(topic)
    if deleted_ms is not None and deleted_ms > ADDITIONAL_RETENTION_MS:
        deleted_ms -= ADDITIONAL_RETENTION_MS
    versions_ms = compaction_lag_ms(topic) if fmt.has(Content.VERSIONS) else None
    return SnapshotRule(end_ms, grace_ms, deleted_ms, versions_ms)


@dataclass
class Tail:
    """The effect of the records from some offset on.

    :param latest: the last record of every identity among them, tombstones included.
    :param position: the first offset that a later snapshot has to look at again.
    :param records: number of records read.
    :param closed_at: offset of the record that ended the day; None if the log ended first.
    """

    rule: SnapshotRule
    latest: dict[Identity, Entry] = field(default_factory=dict)
    position: int | None = None
    records: int = 0
    closed_at: int | None = None

    def add(self, entry: Entry) -> bool:
        """Take the next record; return False if it ends the day and so is not part of it."""
        rule, at = self.rule, entry.timestamp_ms
        if at >= rule.end_ms + rule.grace_ms:
            self.closed_at = entry.offset
            self.position = entry.offset if self.position is None else self.position
            return False
        self.records += 1
        if at < rule.end_ms:
            self.latest[rule.identity(entry.key, at)] = entry
        elif self.position is None:
            self.position = entry.offset
        return True


def survivors(keys: Sequence[bytes], timestamps: Sequence[int], tail: Tail) -> list[bool]:
    """Return which rows of an earlier state a tail does not replace."""
    if tail.rule.versions_ms is None:
        return [key not in tail.latest for key in keys]
    return [pair not in tail.latest for pair in zip(keys, timestamps, strict=True)]


def retained(
    keys: Sequence[bytes], timestamps: Sequence[int], tombstones: Sequence[bool], rule: SnapshotRule
) -> list[bool]:
    """Return which rows are part of the state, given the last record of every identity.

    :param keys: ascending, and ascending by timestamp within a key.
    """
    if rule.versions_ms is not None:
        return _versions(keys, timestamps, tombstones, rule.end_ms - rule.versions_ms)
    if rule.kept_ms is None:
        return [not gone for gone in tombstones]
    since = rule.end_ms - rule.kept_ms
    return [not gone and at >= since for gone, at in zip(tombstones, timestamps, strict=True)]


def _versions(
    keys: Sequence[bytes], timestamps: Sequence[int], tombstones: Sequence[bool], since: int
) -> list[bool]:
    """Keep later versions, and of each key the version that was valid at that time, unless it is a deletion."""
    kept = []
    for i, (key, at) in enumerate(zip(keys, timestamps, strict=True)):
        is_followed = i + 1 < len(keys) and keys[i + 1] == key and timestamps[i + 1] <= since
        kept.append(at > since or (not is_followed and not tombstones[i]))
    return kept
