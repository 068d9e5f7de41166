"""How long a pause may last up to its promotion."""

from __future__ import annotations

from collections.abc import Callable

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.client.waiting import now_ms, within


class PauseLimit:
    """The limit that the application file declares, for the pause of one attempt.

    The journal has the wall clock at the beginning of the pause, for a process that goes on with it. A wall clock
    may be set back, or differ from that of the process before. So no process gives the pause more than the whole
    limit from the moment at which it has seen the pause first.
    """

    def __init__(self, application: Application) -> None:
        self._seconds = application.max_pause_seconds
        self._since_seen: Callable[[], float] | None = None

    def left(self, journal: Journal) -> float:
        """Return how many seconds of the pause are left; none or less if it has lasted too long."""
        if self._since_seen is None:
            self._since_seen = within(self._seconds)
        return min(self._seconds - (now_ms() - journal.pause_started_ms) / 1000, self._since_seen())

    def seconds_left(self, journal: Journal) -> float:
        """Return how long the pause may still last.

        :raises Outage: it has lasted too long, for example because a killed task was noticed late.
        """
        left = self.left(journal)
        if left <= 0:
            raise Outage(
                f"pause of {journal.plan.blue}",
                found=f"more than {self._seconds} s",
                expected=f"promotion within max_pause_seconds ({self._seconds})",
                remedy="Blue is started again; look at the log for what took so long, then trigger again.",
            )
        return left
