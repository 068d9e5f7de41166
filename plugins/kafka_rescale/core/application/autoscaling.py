"""The bounds within which autoscaling may begin an expansion without a person."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator

from kafka_rescale.core.application.fields import PartitionCount, Strict, WholeNumber
from kafka_rescale.core.application.mistakes import WrongValue

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY = "|".join(DAYS)
_WINDOW = re.compile(rf"(?:({_DAY})(?:-({_DAY}))? )?([01]\d|2[0-3]):([0-5]\d)-(?:([01]\d|2[0-3]):([0-5]\d)|24:00)")


@dataclass(frozen=True)
class Window:
    """A part of some days. If the end isn't behind the start, it is on the following day.

    :param days: the days on which it begins, 0 for Monday.
    :param start: minutes since midnight.
    :param end: minutes since midnight, exclusive.
    """

    days: frozenset[int]
    start: int
    end: int

    @classmethod
    def parsed(cls, text: str) -> Window:
        """Return the window that ``mon-fri 22:00-05:00`` describes; without days, of every day.

        :raises WrongValue: the text describes no window.
        """
        found = _WINDOW.fullmatch(text)
        if found is None:
            expected = "days and times as in `mon-fri 22:00-05:00`"
            raise WrongValue(found=repr(text), expected=expected, remedy="Correct it.")
        first, last, *times = found.groups()
        hours = [int(time) if time is not None else 0 for time in times]
        start, end = hours[0] * 60 + hours[1], hours[2] * 60 + hours[3] if times[2] else 24 * 60
        if start == end:
            remedy = "A whole day is 00:00-24:00."
            raise WrongValue(found=repr(text), expected="two different times", remedy=remedy)
        begin = DAYS.index(first) if first else 0
        length = (DAYS.index(last or first) - begin) % 7 + 1 if first else 7
        return cls(frozenset((begin + day) % 7 for day in range(length)), start, end)

    def contains(self, local: datetime) -> bool:
        """Whether a time of day lies in it.

        :param local: in the time zone of the window.
        """
        minute, today, yesterday = local.hour * 60 + local.minute, local.weekday(), (local.weekday() - 1) % 7
        if self.start < self.end:
            return today in self.days and self.start <= minute < self.end
        return (today in self.days and minute >= self.start) or (yesterday in self.days and minute < self.end)


class Bounds(Strict):
    """What autoscaling may do unattended. A field that is left out sets no bound.

    :param windows: when autoscaling may begin an expansion; an expansion that has begun goes on to its end.
    :param time_zone: of the windows.
    :param maximum_partitions: autoscaling never goes further; a person may.
    :param maximum_lag: how many offsets the running generation may be behind, in each partition of its inputs.
    :param approval_above: for a target above this, the plan and the cutover wait for a person's approval.
    """

    windows: tuple[str, ...] = ()
    time_zone: str = "UTC"
    maximum_partitions: PartitionCount | None = None
    maximum_lag: WholeNumber | None = Field(default=None, ge=0)
    approval_above: PartitionCount | None = None

    @field_validator("windows")
    @classmethod
    def _known_windows(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            Window.parsed(text)
        return value

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError):
            expected, remedy = "a name of the tz database", "Write UTC or, say, Europe/Berlin."
            raise WrongValue(found=repr(value), expected=expected, remedy=remedy) from None
        return value

    def wants_approval(self, target: int) -> bool:
        """Whether a person has to agree to a target."""
        return self.approval_above is not None and target > self.approval_above

    def allows(self, target: int) -> bool:
        """Whether autoscaling may go that far at all."""
        return self.maximum_partitions is None or target <= self.maximum_partitions

    def obstacles(self, lag: int, now_ms: int) -> Iterator[str]:
        """Yield the reasons why an expansion has to wait.

        :param lag: the largest of all input partitions, in offsets.
        :param now_ms: wall clock, in ms since the epoch.
        """
        now = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(ZoneInfo(self.time_zone))
        if self.windows and not any(Window.parsed(text).contains(now) for text in self.windows):
            yield f"{now:%a %H:%M} {self.time_zone} is outside the windows {', '.join(self.windows)}"
        if self.maximum_lag is not None and lag > self.maximum_lag:
            yield f"a partition of its inputs is {lag} offsets behind, more than maximum_lag ({self.maximum_lag})"
