"""The day that a snapshot is about."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from kafka_rescale.core.errors import InvalidInput

DAY_MS = 86_400_000
_EPOCH = date(1970, 1, 1)
LATEST_END_MS = ((date.max - _EPOCH).days + 1) * DAY_MS
"""The end of the last day that can be named. Records may have later timestamps."""


@dataclass(frozen=True, order=True)
class SnapshotDay:
    """One day in UTC."""

    date: date

    @classmethod
    def of_interval(cls, start: str, end: str) -> SnapshotDay:
        """Return the day that a data interval covers.

        :param start: the start in ISO 8601, as Airflow renders ``data_interval_start``.
        :param end: the end (exclusive) in the same form.
        :raises InvalidInput: the interval is no whole day in UTC.
        """
        try:
            begin, stop = (datetime.fromisoformat(text) for text in (start, end))
        except ValueError:
            raise _no_day(start, end) from None
        if begin.tzinfo is None or stop.tzinfo is None:
            raise _no_day(start, end)
        begin, stop = begin.astimezone(UTC), stop.astimezone(UTC)
        if begin != datetime(begin.year, begin.month, begin.day, tzinfo=UTC) or stop - begin != timedelta(days=1):
            raise _no_day(start, end)
        return cls(begin.date())

    @classmethod
    def last_before(cls, moment: datetime) -> SnapshotDay:
        """Return the last day that was over at a moment.

        :param moment: the moment, with its time zone.
        """
        return cls(moment.astimezone(UTC).date() - timedelta(days=1))

    @classmethod
    def named(cls, text: str) -> SnapshotDay:
        """Return the day of an ISO date.

        :raises InvalidInput: the text is no ISO date.
        """
        try:
            return cls(date.fromisoformat(text))
        except ValueError:
            raise _no_day(text, "") from None

    @classmethod
    def first_ending_from(cls, at_ms: int) -> SnapshotDay:
        """Return the first day whose end is not before a point in time.

        :param at_ms: ms since the epoch; at most ``LATEST_END_MS``.
        """
        return cls(_EPOCH + timedelta(days=-(-at_ms // DAY_MS) - 1))

    @property
    def end_ms(self) -> int:
        """The end of the day (exclusive), in ms since the epoch."""
        return ((self.date - _EPOCH).days + 1) * DAY_MS

    def minus(self, days: int) -> SnapshotDay:
        """Return the day that is this number of days earlier."""
        return SnapshotDay(self.date - timedelta(days=days))

    def __str__(self) -> str:
        return self.date.isoformat()


def _no_day(start: str, end: str) -> InvalidInput:
    return InvalidInput(
        "data interval",
        found=f"{start} to {end}" if end else repr(start),
        expected="a whole day from midnight to midnight, UTC",
        remedy="Leave the schedule of the snapshot DAG as it is. A manual run takes the last whole day.",
    )
