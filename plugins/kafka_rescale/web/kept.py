"""A value that many ask for and one at a time makes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """A value that is made anew when it is older than so many seconds; who comes meanwhile gets the last one.

    Airflow's server has some 40 threads for all of its pages: one per application may wait for brokers that hang.

    :param first: stands for the value while the very first one is made; without it, who comes then waits.
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
        """The value that was made last."""
        return self._value[1] if self._value else None

    def get(self) -> T:
        """Return the value."""
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
