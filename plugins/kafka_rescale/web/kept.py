"""A cached value: many threads read it, and one thread at a time renews it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """A value that is made anew when it is too old. While one thread makes it, other threads get the last value.

    Airflow's server has about 40 threads for all of its pages. So brokers that hang may block only one thread for
    each application.

    :param make: Makes the value.
    :param seconds: Age from which the value is made anew.
    :param first: Stands for the value while the very first value is made. Without it, all threads wait for the
        very first value.
    :param clock: Returns the time in seconds.
    """

    def __init__(
        self,
        make: Callable[[], T],
        seconds: float,
        *,
        first: T | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make, self._seconds, self._clock = make, seconds, clock
        self._lock = Lock()
        self._value: tuple[float, T] | None = None if first is None else (-math.inf, first)

    @property
    def last(self) -> T | None:
        """The value that was made last, or ``first``; None without either. This never makes a new value."""
        return self._value[1] if self._value else None

    def get(self) -> T:
        """Return the value, and make it anew first if it is too old and no other thread is doing so."""
        last = self._value
        if not self._lock.acquire(blocking=last is None) and last is not None:
            return last[1]
        try:
            if self._value is None or self._clock() - self._value[0] > self._seconds:
                made = self._make()
                self._value = (self._clock(), made)
            return self._value[1]
        finally:
            self._lock.release()
