"""The history of a copy's lags, small enough to be written with every report.

Readings are thinned as they become more, and neighbouring partitions share a row. So the history of a thousand
partitions over hours stays within some ten kilobytes, and still covers the whole time.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafka_rescale.core.control.progress import NO_POSITION, PartitionProgress
from kafka_rescale.core.values import Value

MAX_ROWS = 96
MAX_SAMPLES = 60


class LagRow(Value):
    """Neighbouring partitions of a topic, from ``first`` to ``last`` (inclusive)."""

    topic: str
    first: int
    last: int


class LagSample(Value):
    """One reading.

    :param at_ms: wall clock, ms since the epoch.
    :param total: offsets that are left, over all partitions.
    :param worst: largest lag per row in offsets; ``NO_POSITION`` if a partition of the row has no position.
    """

    at_ms: int
    total: int
    worst: tuple[int, ...]


class LagHistory(Value):
    """The readings of one job or gate.

    :param threshold: acceptable recovery lag in offsets per partition; None if no gate waits for it.
    :param samples: readings that are ``every`` readings apart, and always the first and the newest one.
    :param seen: how many readings there have been.
    """

    threshold: int | None = None
    rows: tuple[LagRow, ...] = ()
    samples: tuple[LagSample, ...] = ()
    every: int = 1
    seen: int = 0

    def observed(self, progress: Sequence[PartitionProgress], at_ms: int, threshold: int | None) -> LagHistory:
        """Return the history with one more reading; a reading of other partitions begins it anew.

        :param at_ms: when it was taken, ms since the epoch.
        """
        rows = _rows(progress)
        known = self if rows == self.rows else LagHistory(rows=rows)
        # The newest reading is always there; the next one replaces it, unless it is a reading that stays.
        kept = known.samples if (known.seen - 1) % known.every == 0 else known.samples[:-1]
        samples, every = (*kept, _sample(rows, progress, at_ms)), known.every
        if len(samples) > MAX_SAMPLES:
            samples, every = samples[::2], every * 2
        return LagHistory(threshold=threshold, rows=rows, samples=samples, every=every, seen=known.seen + 1)

    def seconds_left(self) -> float | None:
        """Return how long the rest takes at the pace of the last third; None if the lag doesn't shrink."""
        if len(self.samples) < 2:
            return None
        first, last = self._recent()
        seconds, gained = (last.at_ms - first.at_ms) / 1000, first.total - last.total
        if last.total == 0:
            return 0.0
        return round(last.total * seconds / gained, 1) if gained > 0 and seconds > 0 else None

    @property
    def has_pace(self) -> bool:
        """Whether the copy has begun and has two readings, so that its pace is known."""
        return len(self.samples) > 1 and set(self._recent()[0].worst) != {NO_POSITION}

    def _recent(self) -> tuple[LagSample, LagSample]:
        return self.samples[-max(2, len(self.samples) // 3)], self.samples[-1]


def _rows(progress: Sequence[PartitionProgress]) -> tuple[LagRow, ...]:
    counts: dict[str, int] = {}
    for each in progress:
        counts[each.topic] = max(counts.get(each.topic, 0), each.partition + 1)
    width = -(-sum(counts.values()) // MAX_ROWS) or 1
    return tuple(
        LagRow(topic=topic, first=first, last=min(first + width, count) - 1)
        for topic, count in counts.items()
        for first in range(0, count, width)
    )


def _sample(rows: Sequence[LagRow], progress: Sequence[PartitionProgress], at_ms: int) -> LagSample:
    lags: dict[str, dict[int, int]] = {}
    for each in progress:
        lags.setdefault(each.topic, {})[each.partition] = each.lag
    worst = []
    for row in rows:
        of_row = [lags[row.topic].get(p, NO_POSITION) for p in range(row.first, row.last + 1)]
        worst.append(NO_POSITION if NO_POSITION in of_row else max(of_row))
    total = sum(p.left for p in progress)
    return LagSample(at_ms=at_ms, total=total, worst=tuple(worst))
