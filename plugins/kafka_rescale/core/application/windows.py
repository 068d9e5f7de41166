"""Windows of an application file: parts of some days, in a time zone, in which something may begin."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field

from kafka_rescale.core.application.fields import Strict
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
        """Return the window that a text such as ``mon-fri 22:00-05:00`` describes; without days, it is every day.

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


def _window(text: str) -> str:
    Window.parsed(text)
    return text


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        expected, remedy = "a name of the tz database", "Write UTC or, say, Europe/Berlin."
        raise WrongValue(found=repr(name), expected=expected, remedy=remedy) from None
    return name


WindowText = Annotated[str, AfterValidator(_window)]
"""What ``Window.parsed`` takes."""
ZoneName = Annotated[str, AfterValidator(_zone)]


class CutoverWindows(Strict):
    """When the application may be stopped for a cutover. A cutover that has begun goes on to its end.

    :param windows: days and times at which a cutover may begin, such as ``sat-sun 02:00-05:00``.
    :param time_zone: time zone of the windows.
    """

    windows: tuple[WindowText, ...] = Field(min_length=1)
    time_zone: ZoneName = "UTC"

    def opens_ms(self, from_ms: int) -> int:
        """Return the first moment from then on that lies in a window; ``from_ms`` itself if a window is open.

        :param from_ms: wall clock, in ms since the epoch.
        :returns: wall clock, in ms since the epoch.
        """
        if is_within(self.windows, self.time_zone, from_ms):
            return from_ms
        return _opening(self.windows, self.time_zone, from_ms // _MINUTE_MS + 1) * _MINUTE_MS

    @property
    def longest_gap_seconds(self) -> int:
        """The longest time between two windows, in a week without a change of the clocks."""
        parsed = [Window.parsed(text) for text in self.windows]
        week = [datetime(2024, 1, 1 + n // _DAY_MINUTES, n // 60 % 24, n % 60) for n in range(7 * _DAY_MINUTES)]
        is_open = [any(window.contains(minute) for window in parsed) for minute in week]
        longest = gap = 0
        for each in is_open + is_open:
            gap = 0 if each else gap + 1
            longest = max(longest, gap)
        return longest * 60

    def __str__(self) -> str:
        return f"{', '.join(self.windows)} {self.time_zone}"


_DAY_MINUTES = 24 * 60
_MINUTE_MS = 60_000


def is_within(windows: Sequence[str], time_zone: str, at_ms: int) -> bool:
    """Whether a moment lies in one of the windows.

    :param at_ms: wall clock, in ms since the epoch.
    """
    local = local_time(time_zone, at_ms)
    return any(_parsed(text).contains(local) for text in windows)


def local_time(time_zone: str, at_ms: int) -> datetime:
    """Return a moment in a time zone.

    :param at_ms: wall clock, in ms since the epoch.
    """
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(ZoneInfo(time_zone))


@lru_cache(maxsize=256)
def _parsed(text: str) -> Window:
    return Window.parsed(text)


@lru_cache(maxsize=256)
def _opening(windows: tuple[str, ...], time_zone: str, from_minute: int) -> int:
    """Return the first minute in a window. It looks at each: that is right where clocks skip or repeat an hour."""
    return next(m for m in count(from_minute) if is_within(windows, time_zone, m * _MINUTE_MS))
