"""Keeps a worker to its share of a rate: a token bucket that says how long the worker has to rest.

A worker rests only when nothing of it is open at the brokers, and it listens to nothing meanwhile. So a rest is
no silence (``silence``), no standstill (``watch``), and lengthens no transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable

Share = Callable[[], float | None]
"""Returns bytes per second, now: 0 to pause, None without a limit. It is asked in every step of a worker."""

BURST_SECONDS = 0.5
"""How far a worker writes ahead of its share before it rests. Each rest costs a commit of every unit."""
PAUSED_SECONDS = 1.0
"""How long a rest is at least while the copy is paused."""


class Throttle:
    """How much of its share a worker has used up.

    :param share: the share, as it is now.
    :param clock: monotonic, in seconds.
    """

    def __init__(self, share: Share, clock: Callable[[], float] = time.monotonic) -> None:
        self._share, self._clock = share, clock
        self._debt, self._at, self._rests = 0.0, clock(), False

    @property
    def most_bytes(self) -> float | None:
        """How much to write at a time; None without a limit."""
        share = self._share()
        return None if share is None else share * BURST_SECONDS

    def spent(self, size: int) -> None:
        """Note bytes that were written."""
        self._debt += size

    def rest_seconds(self) -> float:
        """Return for how many seconds the worker has to rest now; 0 if it may go on."""
        share, now = self._share(), self._clock()
        passed, self._at = now - self._at, now
        if share is None:
            self._debt, self._rests = 0.0, False
            return 0.0
        self._debt = max(0.0, self._debt - passed * share)
        if share == 0:
            return PAUSED_SECONDS
        self._rests = self._debt > (0 if self._rests else share * BURST_SECONDS)
        return self._debt / share if self._rests else 0.0

    def wait(self, look_seconds: float, before_sleep: Callable[[], None] = lambda: None) -> None:
        """Sleep until the worker may go on.

        :param look_seconds: how often to look whether the share has changed meanwhile.
        :param before_sleep: called before each sleep.
        """
        while (rest := self.rest_seconds()) > 0:
            before_sleep()
            time.sleep(min(rest, look_seconds))


def unlimited() -> None:
    """Return the share of a worker without a limit."""
    return
