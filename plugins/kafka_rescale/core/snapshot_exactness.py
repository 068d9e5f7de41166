"""Whether a log still has what a state of the past needs, and if not, from when on it does.

Log cleaning keeps only the last record of a key among those that it has looked at: all before some offset, which
brokers don't tell. A state as of an earlier moment may need one that is gone. The first key whose earlier record
is still there when it comes again bounds that offset from above. What was removed is in order with what is left,
within the grace of the snapshots; so it is older than the newest record up to there, plus the grace.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_rescale.core.record_batches import Batch
from kafka_rescale.core.snapshot_rows import SnapshotRule


@dataclass
class Coverage:
    """Walks over the batches of a log from ``start`` to ``end``.

    :param start: first offset that should be there.
    :param end: exclusive.
    :param begin: the log start offset; one above ``start`` means that the log's beginning was deleted.
    :param again: the offset at which a key comes again whose earlier record is still there; None if none does.
    """

    start: int
    end: int
    begin: int = 0
    again: int | None = None
    _position: int = -1
    _removed: bool = False
    _leading_ms: int | None = None
    _newest_ms: int | None = None
    _settled_ms: int | None = None
    _pending: bool = False

    def __post_init__(self) -> None:
        self._position = max(self.start, self.begin)

    def add(self, batch: Batch) -> None:
        """Look at the next batch."""
        if batch.last < self._position or batch.first >= self.end:
            return
        if batch.first > self._position or not batch.is_whole:
            self._removed = self._pending = True
        self._position = batch.last + 1
        if batch.is_control or not batch.records:
            return
        self._newest_ms = max(batch.max_timestamp_ms, self._newest_ms or batch.max_timestamp_ms)
        self._leading_ms = batch.max_timestamp_ms if self._leading_ms is None else self._leading_ms
        if self._pending and batch.is_whole:
            self._pending, self._settled_ms = False, self._newest_ms
        if self.again is not None and batch.first <= self.again <= batch.last:
            self._settled_ms = self._newest_ms

    @property
    def is_headless(self) -> bool:
        """Whether the beginning is gone."""
        return self.begin > self.start

    @property
    def is_whole(self) -> bool:
        """Whether nothing at all is missing."""
        return self.start >= self.end or not (self.is_headless or self._is_cleaned)

    def exact_from_ms(self, rule: SnapshotRule) -> int | None:
        """Return the first moment as of which the state can be told exactly; 0 is ever, None is never.

        :param rule: its end does not matter.
        """
        if self.is_whole:
            return 0
        beginning = self._from_beginning(rule) if self.is_headless else 0
        cleaning = self._from_cleaning(rule) if self._is_cleaned else 0
        return None if beginning is None or cleaning is None else max(beginning, cleaning)

    @property
    def _is_cleaned(self) -> bool:
        return self._removed or self._position < self.end

    def _from_beginning(self, rule: SnapshotRule) -> int | None:
        if rule.kept_ms is None or self._leading_ms is None:
            return None
        return self._leading_ms + rule.grace_ms + rule.kept_ms + 1

    def _from_cleaning(self, rule: SnapshotRule) -> int | None:
        settled = self._newest_ms if self.again is None else self._settled_ms
        if settled is None or self._pending or self._position < self.end:
            return None
        return settled + rule.grace_ms + rule.history_ms + 1
