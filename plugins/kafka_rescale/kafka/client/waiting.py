"""Bounded waiting for a condition, as Kafka makes changes visible only a little later."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from kafka_rescale.core.errors import ClusterOutage, RescaleError, TimedOut

T = TypeVar("T")

log = logging.getLogger(__name__)

STEADY_SECONDS = 600.0
"""Longer than a copy needs to find out that it stands still."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


def now_ms() -> int:
    """Return the wall clock in ms since the epoch."""
    return int(time.time() * 1000)


def within(seconds: float) -> Callable[[], float]:
    """Return a function that tells how many of the seconds are left, counted from now."""
    deadline = time.monotonic() + seconds
    return lambda: deadline - time.monotonic()


def poll_until(
    probe: Callable[[], T],
    *,
    seconds: float,
    otherwise: Callable[[], RescaleError],
    longest_pause: float = _LONGEST_PAUSE,
) -> T:
    """Return the first true value of ``probe``, asking at growing intervals.

    :param seconds: how long to ask. ``probe`` is called at least once.
    :param otherwise: returns the error to raise when the time is over.
    :param longest_pause: the most seconds between two calls.
    """
    deadline = time.monotonic() + seconds
    pause = min(_FIRST_PAUSE, longest_pause)
    while not (value := probe()):
        if time.monotonic() >= deadline:
            raise otherwise()
        time.sleep(pause)
        pause = min(2 * pause, longest_pause)
    return value


def again_after_outage(action: Callable[[], T], tries: int = 3, *, steady_seconds: float = STEADY_SECONDS) -> T:
    """Call an action, and call it again if it ends with an outage of the cluster.

    The action has to be one that may be begun again at any time.

    :param tries: how often in a row the action may fail. Each request of the action has a time limit of its own.
    :param steady_seconds: a try that has lasted for so long has done its work. The next outage, which may come
        weeks later, is another one, and is counted anew.
    :returns: what the action returns.
    :raises ClusterOutage: the last try has failed.
    """
    failures = 0
    while True:
        began = time.monotonic()
        try:
            return action()
        except ClusterOutage as outage:
            failures = 1 if time.monotonic() - began > steady_seconds else failures + 1
            if failures >= tries:
                raise
            log.warning("%s It is tried again.", outage)


def wait_until(
    condition: Callable[[], bool], *, seconds: float, what: str, remedy: str, longest_pause: float = 0.1
) -> None:
    """Return once the condition holds.

    :param seconds: how long to wait at most.
    :param what: the subject of the wait, as a noun and an infinitive: ``shop to run again``.
    :raises Outage: the condition did not hold in time.
    """
    poll_until(
        condition,
        seconds=seconds,
        otherwise=lambda: TimedOut(what, seconds, remedy),
        longest_pause=longest_pause,
    )
