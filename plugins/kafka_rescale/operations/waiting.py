"""Waiting on conditions with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

from kafka_rescale.core.errors import Outage


def now_ms() -> int:
    """Return the wall clock in ms since the epoch."""
    return int(time.time() * 1000)


def wait_until(
    condition: Callable[[], bool], *, seconds: float, what: str, remedy: str, poll_seconds: float = 0.1
) -> None:
    """Return once the condition holds.

    :param seconds: how long to wait at most.
    :param what: what is waited for, for the error.
    :raises Outage: it did not hold in time.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Outage(what, found=f"no, after {seconds:.0f} s", expected="yes", remedy=remedy)
        time.sleep(poll_seconds)
