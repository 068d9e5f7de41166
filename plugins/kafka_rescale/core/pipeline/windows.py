"""Windows of time, keys with a window, and the serdes of such keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, NamedTuple

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.serdes import LONG, Serde

_MILLISECOND = timedelta(milliseconds=1)


class Windowed(NamedTuple):
    """The key of a windowed table.

    :param start: the start of the window in ms, inclusive.
    :param end: the end of the window in ms. It is exclusive for windows of time, and inclusive for sessions.
    """

    key: Any
    start: int
    end: int


@dataclass(frozen=True)
class TimeWindows:
    """Windows of one size: tumbling windows, or hopping windows if ``advance`` is given (``TimeWindows``).

    :param advance: the time between the starts of two windows.
    :param grace: the time after a window's end in which the window still takes late records.
    """

    size: timedelta
    advance: timedelta | None = None
    grace: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        _check_lengths("windows", size=self.size)
        _check_lengths("grace period", at_least=0, grace=self.grace)
        if not 0 < self.advance_ms <= self.size_ms:
            raise _wrong("windows", f"an advance of {self.advance_ms} ms", f"1 to {self.size_ms} ms, their size")

    @cached_property
    def size_ms(self) -> int:
        """The length of a window in ms."""
        return self.size // _MILLISECOND

    @cached_property
    def advance_ms(self) -> int:
        """The time between the starts of two windows in ms."""
        return (self.size if self.advance is None else self.advance) // _MILLISECOND

    @cached_property
    def grace_ms(self) -> int:
        """The time in ms after a window's end in which the window still takes late records."""
        return self.grace // _MILLISECOND

    @property
    def key_bytes(self) -> int:
        """The number of bytes that ``serde`` adds to a key for its window."""
        return 8

    @property
    def retention_ms(self) -> int:
        """The time in ms for which a store has to keep a window, counted from the window's start."""
        return self.size_ms + self.grace_ms

    def starts(self, timestamp: int) -> Iterator[int]:
        """Yield the starts of the windows that a record belongs to, in order (``TimeWindows#windowsFor``)."""
        first = max(0, timestamp - self.size_ms + self.advance_ms) // self.advance_ms * self.advance_ms
        return iter(range(first, timestamp + 1, self.advance_ms))

    def serde(self, inner: Serde | None) -> Serde | None:
        """Return the serde of windowed keys, or ``None`` if no serde of keys is declared."""
        return None if inner is None else _TimeWindowed(inner, self.size_ms)


@dataclass(frozen=True)
class SessionWindows:
    """Windows that last as long as records follow each other without a long pause (``SessionWindows``).

    :param gap: the longest pause between two records of one session. A longer pause ends the session.
    :param grace: the time after the gap in which a session still takes late records.
    """

    gap: timedelta
    grace: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        _check_lengths("sessions", gap=self.gap)
        _check_lengths("grace period", at_least=0, grace=self.grace)

    @cached_property
    def gap_ms(self) -> int:
        """The longest pause in ms between two records of one session."""
        return self.gap // _MILLISECOND

    @cached_property
    def grace_ms(self) -> int:
        """The time in ms after the gap in which a session still takes late records."""
        return self.grace // _MILLISECOND

    @property
    def key_bytes(self) -> int:
        """The number of bytes that ``serde`` adds to a key for its session."""
        return 16

    @property
    def retention_ms(self) -> int:
        """The time in ms for which a store has to keep a session, counted from the session's end."""
        return self.gap_ms + self.grace_ms

    def serde(self, inner: Serde | None) -> Serde | None:
        """Return the serde of windowed keys, or ``None`` if no serde of keys is declared."""
        return None if inner is None else _SessionWindowed(inner)


@dataclass(frozen=True)
class JoinWindows:
    """How far apart in time two joined records may be (``JoinWindows``).

    :param before: the time by which the right side's record may be earlier than the left side's.
    :param after: the time by which the right side's record may be later than the left side's.
    :param grace: the time after the end of the window in which late records are still joined.
    """

    before: timedelta
    after: timedelta
    grace: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        _check_lengths("join windows", at_least=0, before=self.before, after=self.after, grace=self.grace)

    @classmethod
    def of(cls, time_difference: timedelta, grace: timedelta = timedelta(0)) -> JoinWindows:
        """Return windows that reach equally far in both directions (``ofTimeDifferenceAndGrace``)."""
        return cls(time_difference, time_difference, grace)

    @cached_property
    def before_ms(self) -> int:
        """The time in ms by which the right side's record may be earlier than the left side's."""
        return self.before // _MILLISECOND

    @cached_property
    def after_ms(self) -> int:
        """The time in ms by which the right side's record may be later than the left side's."""
        return self.after // _MILLISECOND

    @cached_property
    def grace_ms(self) -> int:
        """The time in ms after the window in which late records are still joined."""
        return self.grace // _MILLISECOND

    @property
    def retention_ms(self) -> int:
        """The time in ms for which the stores of a join have to keep records."""
        return self.before_ms + self.after_ms + self.grace_ms


class _TimeWindowed:
    """Writes the key, then the window's start in 8 bytes, as ``TimeWindowedSerializer`` does."""

    def __init__(self, inner: Serde, size_ms: int) -> None:
        self.inner, self._size_ms = inner, size_ms

    def encode(self, value: Windowed) -> bytes:
        return self.inner.encode(value.key) + LONG.encode(value.start)

    def decode(self, data: bytes) -> Windowed:
        start = LONG.decode(data[-8:])
        return Windowed(self.inner.decode(data[:-8]), start, start + self._size_ms)


class _SessionWindowed:
    """Writes the key, then the session's end and start in 8 bytes each, as ``SessionWindowedSerializer`` does."""

    def __init__(self, inner: Serde) -> None:
        self.inner = inner

    def encode(self, value: Windowed) -> bytes:
        return self.inner.encode(value.key) + LONG.encode(value.end) + LONG.encode(value.start)

    def decode(self, data: bytes) -> Windowed:
        return Windowed(self.inner.decode(data[:-16]), LONG.decode(data[-8:]), LONG.decode(data[-16:-8]))


def _check_lengths(what: str, at_least: int = 1, **lengths: timedelta) -> None:
    for name, length in lengths.items():
        if length < at_least * _MILLISECOND:
            raise _wrong(what, f"{name}={length!r}", f"at least {at_least} ms")


def _wrong(what: str, found: str, expected: str) -> InvalidInput:
    return InvalidInput(what, found=found, expected=expected, remedy="Correct the pipeline.")
