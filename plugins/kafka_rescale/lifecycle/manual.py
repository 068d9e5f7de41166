"""A lifecycle by hand: the task asks a person to act and goes on when Kafka shows that the person has done it."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from kafka_rescale.core.application.lifecycles import ManualLifecycle
from kafka_rescale.core.errors import TimedOut
from kafka_rescale.lifecycle.instance import Instance

log = logging.getLogger(__name__)
_POLL_SECONDS = 0.5
LINGERS = (
    "When all instances have ended, say so: python -m kafka_rescale stopped FILE. Without that, a classic group "
    "shows the end only after session.timeout.ms, 45 s by default, unless the program closes with CloseOptions "
    "that leave the group"
)
LATE = "Do it. If the task has failed by then, trigger the expansion again; from the promotion on, clear the task."
PAUSE_OVER = (
    "The pause may not last longer. What was stopped is started again: look at what the log "
    "asks for now. Then trigger the expansion again, while somebody stands by."
)


class Person:
    """Asks a person, through the task's log, to start and stop instances.

    :param spec: the ``lifecycle`` section of the application file.
    :param has_members: takes the name of a consumer group; returns whether the group has live members.
    """

    def __init__(self, spec: ManualLifecycle, has_members: Callable[[str], bool]) -> None:
        self._spec = spec
        self._has_members = has_members

    def start(self, instance: Instance) -> None:
        """Ask the person for a start and wait until the group has members."""
        what = f"START {instance.application_id} for {instance.partitions} partitions{_reading(instance)}"
        self._ask(what, self._spec.instructions, instance, running=True)

    def start_gated(self, instance: Instance) -> None:
        """Ask the person for a start behind the warm-up gate and wait until the group has members."""
        what = f"START {instance.application_id} BEHIND THE WARM-UP GATE for {instance.partitions} partitions"
        self._ask(f"{what}{_reading(instance)}", self._spec.start_gated or "", instance, running=True)

    def start_held(self, instance: Instance) -> None:
        """Ask the person for a start behind the hold gate, and return: held instances are in no group."""
        what = f"START {instance.application_id} BEHIND THE HOLD GATE for {instance.partitions} partitions"
        log.warning("PLEASE %s%s NOW. %s", what, _reading(instance), self._spec.start_held or "")

    def stop(self, instance: Instance, seconds: float = math.inf) -> None:
        """Ask the person for a stop and wait until the group has no members.

        :param seconds: how long the caller can wait, if that is less than the file's ``timeout_seconds``.
        """
        what = f"STOP every instance of {instance.application_id}"
        instructions = f"{self._spec.instructions} ({LINGERS})".strip()
        self._ask(what, instructions, instance, running=False, seconds=seconds)

    def is_running(self, instance: Instance) -> bool:
        """Return whether the group has members. This call asks Kafka, not the person."""
        return self._has_members(instance.application_id)

    def _ask(
        self, what: str, instructions: str, instance: Instance, *, running: bool, seconds: float = math.inf
    ) -> None:
        longest = min(seconds, self._spec.timeout_seconds)
        deadline = time.monotonic() + longest
        log.warning("PLEASE %s NOW. %s", what, instructions)
        while self._has_members(instance.application_id) is not running:
            if time.monotonic() > deadline:
                raise TimedOut(
                    f"a person to do what the manual lifecycle asks for: {what}",
                    seconds=longest,
                    remedy=PAUSE_OVER if seconds < self._spec.timeout_seconds else LATE,
                )
            time.sleep(_POLL_SECONDS)


def _reading(instance: Instance) -> str:
    reading = ", ".join(f"{topic} as {name}" for name, topic in instance.inputs.items() if topic != name)
    return f", reading {reading}" if reading else ""
