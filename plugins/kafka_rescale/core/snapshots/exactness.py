"""The exactness of past states: from which moment on a log still has all records that a state needs.

Log cleaning removes a record once its key comes again in the segments that a cleaning pass reads. A state as of a
moment between the two records may then need the removed record. No API tells how far a pass has read. The
remaining records don't tell it either, because a pass replaces one group of segments after the other. While a pass
is at work, or after it was interrupted, only the first groups lack records that later groups supersede.

But a pass never reads the newest segment. This segment is never empty, because brokers make a segment to append a
record to it. So every removed record was superseded before the newest segment begins. Records are out of order by
at most the grace of the snapshots. So a removed record is at most by the grace younger than the newest record up
to the first batch of that segment. A pass also never reads a segment with a record that is younger than the
topic's ``min.compaction.lag.ms``. But only the user knows since when the topic has had this setting.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kafka_rescale.core.formats.record_batches import Batch
from kafka_rescale.core.snapshots.rows import SnapshotRule


@dataclass
class Coverage:
    """Walks over the batches of a log from ``start`` to ``end``.

    :param start: the first offset that should be there.
    :param end: the end of the range (exclusive).
    :param begin: the log start offset. If it is above ``start``, the beginning of the range was deleted.
    :param hole_end: the first offset behind all records that are missing at or behind ``begin``. None if none is
        missing there.
    :param is_expiring: whether the range has deletions for which log cleaning has already set the time of removal.
    """

    start: int
    end: int
    begin: int = 0
    hole_end: int | None = None
    is_expiring: bool = False
    _position: int = -1
    _segment: int = -1
    _last: int = -1
    _newest_ms: int | None = None
    _cleanable_ms: int | None = None

    def __post_init__(self) -> None:
        self._position = max(self.start, self.begin)

    def add(self, batch: Batch) -> None:
        """Look at the next batch."""
        if batch.last < self._position:
            return
        self._date(batch)
        if batch.first >= self.end:
            return
        self.is_expiring = self.is_expiring or (batch.has_delete_horizon and not batch.is_control)
        if not batch.is_whole:
            self.hole_end = batch.last + 1
        elif batch.first > self._position:
            self.hole_end = batch.first
        self._position = batch.last + 1

    def close(self) -> None:
        """Note that there are no more batches."""
        if self._position < self.end:
            self.hole_end = self.end

    def _date(self, batch: Batch) -> None:
        self._segment = batch.first if batch.opens_segment else self._segment
        if batch.is_control:
            return
        self._newest_ms = max(batch.max_timestamp_ms, self._newest_ms or 0)
        if self._last < self._segment:
            self._cleanable_ms = self._newest_ms
        self._last = batch.last

    @property
    def settled_ms(self) -> int | None:
        """The newest time that a removed record, or a record that superseded it, can have, without the grace.

        None means that this time is unknown. Ask for it after ``close``, and only if every batch up to the very
        end of the log was added, also behind the range. The reason: a segment that was the newest one when the
        range was chosen may have been cleaned since.
        """
        hole_end = self.hole_end or 0
        if self._last < hole_end:
            return None
        # The newest segment has no holes. If it seems to have one, the reader has taken a wrong segment for the
        # newest.
        is_newest = self._segment >= hole_end and self._last >= self._segment
        return self._cleanable_ms if is_newest else self._newest_ms

    @property
    def is_headless(self) -> bool:
        """Whether the beginning of the range was deleted."""
        return self.begin > self.start

    @property
    def is_whole(self) -> bool:
        """Whether no record of the range is missing. Ask for it after ``close``."""
        return self.start >= self.end or not (self.is_headless or self.hole_end is not None)


def coverage_of(batches: Iterable[Batch], start: int, end: int, begin: int) -> Coverage:
    """Return the coverage of a range. The parameters are those of ``Coverage``."""
    coverage = Coverage(start, end, begin)
    for batch in batches:
        coverage.add(batch)
    coverage.close()
    return coverage


def exact_from_ms(
    coverage: Coverage,
    first_ms: int | None,
    rule: SnapshotRule,
    lagging_ms: int | None = None,
    taken_over_ms: int | None = None,
) -> int | None:
    """Return the first moment as of which the log gives the exact state. 0 stands for any moment, None for none.

    :param coverage: the coverage of the whole log (``Coverage.settled_ms``).
    :param first_ms: the timestamp of the first record that is left. None if no record is left.
    :param rule: the rule of the store. Its end does not matter.
    :param lagging_ms: the moment from which on records have always been too young for log cleaning. None if the
        application file doesn't tell it.
    :param taken_over_ms: the moment at which another generation took over the log behind the range. It has buried
        keys there by tombstones with the keys' own times. So the time of a tombstone does not tell since when its
        key is not needed. None if there is no such generation.
    """
    if coverage.is_whole:
        return 0
    moments = []
    if coverage.is_headless:
        moments.append(None if first_ms is None or rule.kept_ms is None else first_ms + rule.kept_ms)
    if coverage.hole_end is not None:
        bounds = [bound for bound in (coverage.settled_ms, lagging_ms) if bound is not None]
        history_ms = rule.history_ms
        moments.append(min(bounds) + history_ms if bounds and history_ms is not None else None)
    known = [moment + rule.grace_ms + 1 for moment in moments if moment is not None]
    if len(known) < len(moments):
        return None
    return max(*known, taken_over_ms or 0 if coverage.hole_end is not None else 0)
