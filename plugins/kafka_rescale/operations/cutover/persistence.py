"""Going on while the brokers don't answer: the steps that begin or end a pause don't give up because of that.

``kafka.client.waiting`` waits for a condition of a cluster that answers. ``lease.update_despite_races`` waits for
a race that is over within a second. This module waits for the cluster itself, and logs all the while what the
pause waits for.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import TypeVar

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.errors import ClusterOutage, NotLetIn, Outage, RescaleError
from kafka_rescale.core.expansion.pause_alert import is_stopped
from kafka_rescale.kafka.client.waiting import now_ms, within
from kafka_rescale.lifecycle.instance import Instance, Lifecycle

T = TypeVar("T")
log = logging.getLogger(__name__)

TELL_SECONDS = 5.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 2.0
COMMAND_SECONDS = 60.0
"""How long a failing ``start`` is called again before the task fails and a person is told."""
REFUSAL_SECONDS = 120.0
"""How long a step waits for brokers that refuse its credentials: an issuer of tokens may be away for a moment.

After that, Airflow's next try reads the connection again, which a person may have mended."""
ONE_REFUSAL_SECONDS = 90.0
"""A try that is refused from its beginning gives up before that. A longer try has been let in meanwhile."""
OUTAGE_SECONDS = 600.0
"""How long a step waits for the cluster while no application is stopped for it."""


def insist(
    step: Callable[[], T],
    told: Callable[[], str],
    *,
    seconds_left: Callable[[], float] = lambda: math.inf,
    again: type[RescaleError] | tuple[type[RescaleError], ...] = ClusterOutage,
) -> T:
    """Call a step until it returns, as long as it fails only because the brokers don't answer.

    :param step: it may be killed at any instruction and called again.
    :param told: returns the sentence about the wait; it is logged every few seconds, also while the step hangs.
    :param seconds_left: returns how long the step may still be tried; called after every failure.
    :param again: the errors after which the step is called again; any other error is raised at once.
    :returns: what the step returns.
    :raises NotLetIn: brokers have refused the credentials for ``REFUSAL_SECONDS``.
    :raises RescaleError: the last failure, once no time is left.
    """
    pause, refused_at = FIRST_PAUSE_SECONDS, math.inf
    with _Telling(told) as telling:
        while True:
            began = time.monotonic()
            try:
                return step()
            except again as error:
                now = time.monotonic()
                if not isinstance(error, NotLetIn):
                    refused_at = math.inf
                elif now - began > ONE_REFUSAL_SECONDS or refused_at > now:
                    refused_at = now
                if seconds_left() <= 0 or now - refused_at > REFUSAL_SECONDS:
                    raise
                telling.last = error
            time.sleep(min(pause, max(0.0, seconds_left())))
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def start(lifecycle: Lifecycle, instance: Instance, told: Callable[[], str]) -> None:
    """Start an instance set; if the command fails, call it again for a while.

    :param told: as in ``insist``.
    :raises Outage: the command still fails.
    """
    insist(lambda: lifecycle.start(instance), told, seconds_left=within(COMMAND_SECONDS), again=Outage)


def state_of_pause(application: str, journal: Journal | None, what: str, *, has_started: bool = False) -> str:
    """Return the sentence about a wait: what for, and whether a generation processes the inputs meanwhile.

    :param journal: as last seen; None while it has not been read.
    :param what: what the cutover waits for.
    :param has_started: whether green was started. Who then reads that nobody runs may start something by hand.
    """
    waiting = f"waiting for {what}"
    if journal is None:
        return f"it is not known whether anything processes the inputs of {application}: {waiting}"
    plan = journal.plan
    if not is_stopped(journal):
        return (
            f"{plan.green if journal.is_promoted else plan.blue} processes the inputs of {application}: {waiting}"
        )
    seconds = max(0.0, (now_ms() - journal.pause_started_ms) / 1000)
    if has_started:
        return (
            f"{plan.green} was started, and nothing is known of its work on the inputs of {application} yet, "
            f"{seconds:.0f} s after the pause began. Start nothing else: {waiting}"
        )
    stopped = f"{plan.blue} is stopped"
    if not plan.is_in_place:
        stopped = f"neither {plan.blue} nor {plan.green} runs"
    return f"NOBODY PROCESSES the inputs of {application} for {seconds:.0f} s by now, {stopped}: {waiting}"


class _Telling:
    """Logs every few seconds what a step waits for, from a thread of its own: the step may hang in a request."""

    def __init__(self, told: Callable[[], str]) -> None:
        self.last: RescaleError | None = None
        self._told, self._over = told, Event()
        self._thread = Thread(target=self._tell, name="kafka-rescale-telling", daemon=True)

    def _tell(self) -> None:
        while not self._over.wait(TELL_SECONDS):
            log.warning("%s%s", self._told(), f"; the last answer: {self.last}" if self.last else "")

    def __enter__(self) -> _Telling:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
