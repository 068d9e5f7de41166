"""Bounded waiting on a condition, for what Kafka only makes visible a little later."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from kafka_rescale.core.errors import RescaleError

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


def poll_until(probe: Callable[[], T], *, seconds: float, otherwise: Callable[[], RescaleError]) -> T:
    """Return the first true value of ``probe``, asking at growing intervals.

    :param seconds: how long to ask; it is asked at least once.
    :param otherwise: makes the error that is raised when the time is over.
    """
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE
    while not (value := probe()):
        if time.monotonic() >= deadline:
            raise otherwise()
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    return value
