"""The effect of a part of a log on the state as of a day, and what the next day has to know of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kafka_rescale.core.snapshots.rows import Entry, Identity, SnapshotRule

_ENTRY_BYTES = 100


@dataclass
class Tail:
    """The effect of the records from some offset on.

    A record beyond the grace ends the day, but not if a record of the day follows soon: then the first one is
    dated ahead, as by a device whose clock is wrong. It is left out as all later records are. The next day gets it
    with ``start_with``, so it need not read the log again from there.

    :param latest: the last record of every identity among the records of the day, tombstones included.
    :param records: the number of records before the one that ended the day.
    :param closed_at: the offset of the record that ended the day. None if the log ended before.
    """

    rule: SnapshotRule
    latest: dict[Identity, Entry] = field(default_factory=dict)
    records: int = 0
    closed_at: int | None = None
    _ahead: list[Entry] = field(default_factory=list)
    _left_at: int | None = None
    _closers: list[Entry] = field(default_factory=list)
    _behind: int = 0

    def start_with(self, ahead: Iterable[Entry]) -> None:
        """Take the records that an earlier day has left out as dated ahead. They lie before the first record."""
        for entry in ahead:
            if entry.timestamp_ms < self.rule.end_ms:
                self.latest[self.rule.identity(entry.key, entry.timestamp_ms)] = entry
            else:
                self._ahead.append(entry)

    def add(self, entry: Entry) -> bool:
        """Take the next record. Return False if the day is over, so that no more records are needed."""
        rule, at = self.rule, entry.timestamp_ms
        if at < rule.end_ms:
            self._go_on()
            self.latest[rule.identity(entry.key, at)] = entry
        elif at < rule.end_ms + rule.grace_ms:
            self._left_at = entry.offset if self._left_at is None else self._left_at
        else:
            self._closers.append(entry)
            self.closed_at = self._closers[0].offset
        if self.closed_at is None:
            self.records += 1
        else:
            self._behind += 1
        return len(self._closers) < rule.closers

    @property
    def resume_at(self) -> int | None:
        """The first offset that the next day reads, beside the records ahead. None if it is the log's end."""
        return min((at for at in (self._left_at, self.closed_at) if at is not None), default=None)

    @property
    def position(self) -> int | None:
        """The first offset from which a replay leads to every later state. None if it is the end of the log."""
        return self.ahead[0].offset if self.ahead else self.resume_at

    @property
    def ahead(self) -> list[Entry]:
        """The records before ``resume_at`` that count on a later day: no record of this day replaces them."""
        return [entry for entry in self._ahead if not self._is_replaced(entry)]

    def _is_replaced(self, entry: Entry) -> bool:
        found = self.latest.get(self.rule.identity(entry.key, entry.timestamp_ms))
        return found is not None and found.offset > entry.offset

    def _go_on(self) -> None:
        for entry in self._closers:
            if self._left_at is not None and self._left_at < entry.offset:
                break
            ahead = [*self.ahead, entry]
            if sum(map(_size, ahead)) > self.rule.ahead_bytes:
                self._left_at = entry.offset
                break
            self._ahead = ahead
        self.records += self._behind
        self._closers, self._behind, self.closed_at = [], 0, None


def survivors(keys: Sequence[bytes], timestamps: Sequence[int], tail: Tail) -> list[bool]:
    """Return for each row of an earlier state whether it stays: whether the tail does not replace it."""
    if tail.rule.versions_ms is None:
        return [key not in tail.latest for key in keys]
    return [pair not in tail.latest for pair in zip(keys, timestamps, strict=True)]


def _size(entry: Entry) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in entry.headers)
    return _ENTRY_BYTES + len(entry.key) + len(entry.value or b"") + headers
