"""Whether a log still has what a state of the past needs, and if not, from when on it does.

Log cleaning keeps only the last record of a key among those that it has looked at: all before some offset, which
brokers don't tell. A state as of an earlier moment may need one that is gone. The first key whose earlier record
is still there when it comes again bounds that offset from above. What was removed is in order with what is left,
within the grace of the snapshots; so it is older than the newest record up to there, plus the grace.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kafka_rescale.core.record_batches import Batch
from kafka_rescale.core.snapshot_rows import Entry, SnapshotRule


@dataclass
class Coverage:
    """Walks over the batches of a log from ``start`` to ``end``.

    :param start: first offset that should be there.
    :param end: exclusive.
    :param begin: the log start offset; one above ``start`` means that the log's beginning was deleted.
    :param hole_end: the first offset behind everything else that was removed; None if nothing was.
    """

    start: int
    end: int
    begin: int = 0
    hole_end: int | None = None
    _position: int = -1

    def __post_init__(self) -> None:
        self._position = max(self.start, self.begin)

    def add(self, batch: Batch) -> None:
        """Look at the next batch."""
        if batch.last < self._position or batch.first >= self.end:
            return
        if not batch.is_whole:
            self.hole_end = batch.last + 1
        elif batch.first > self._position:
            self.hole_end = batch.first
        self._position = batch.last + 1

    def close(self) -> None:
        """Note that there are no more batches."""
        if self._position < self.end:
            self.hole_end = self.end

    @property
    def is_headless(self) -> bool:
        """Whether the beginning is gone."""
        return self.begin > self.start

    @property
    def is_whole(self) -> bool:
        """Whether nothing at all is missing; to be asked once it is closed."""
        return self.start >= self.end or not (self.is_headless or self.hole_end is not None)


def coverage_of(batches: Iterable[Batch], start: int, end: int, begin: int) -> Coverage:
    """Return what is left of a range; see ``Coverage``."""
    coverage = Coverage(start, end, begin)
    for batch in batches:
        coverage.add(batch)
    coverage.close()
    return coverage


def exact_from_ms(coverage: Coverage, entries: Iterable[Entry], rule: SnapshotRule) -> int | None:
    """Return the first moment as of which the state can be told exactly; 0 is ever, None is never.

    :param entries: what is left of the same range, in its order; read only as far as needed.
    :param rule: its end does not matter.
    """
    if coverage.is_whole:
        return 0
    moments = []
    first_ms, settled_ms = _settled(entries, coverage.hole_end)
    if coverage.is_headless:
        moments.append(None if first_ms is None or rule.kept_ms is None else first_ms + rule.kept_ms)
    if coverage.hole_end is not None:
        moments.append(None if settled_ms is None else settled_ms + rule.history_ms)
    known = [moment + rule.grace_ms + 1 for moment in moments if moment is not None]
    return max(known) if len(known) == len(moments) else None


def _settled(entries: Iterable[Entry], hole_end: int | None) -> tuple[int | None, int | None]:
    """Return the time of the first record, and the newest time in what may have been cleaned; None is unknown."""
    seen: set[bytes] = set()
    first_ms = newest_ms = None
    has_returned = is_behind = False
    for entry in entries:
        first_ms = entry.timestamp_ms if first_ms is None else first_ms
        if hole_end is None:
            return first_ms, None
        newest_ms = max(entry.timestamp_ms, entry.timestamp_ms if newest_ms is None else newest_ms)
        has_returned = has_returned or entry.key in seen
        is_behind = is_behind or entry.offset >= hole_end
        if has_returned and is_behind:
            return first_ms, newest_ms
        seen.add(entry.key)
    return first_ms, newest_ms if is_behind else None
