"""Lifecycle by a person: the task says what to do and goes on when Kafka shows that it has been done."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from kafka_rescale.core.application.lifecycles import ManualLifecycle
from kafka_rescale.core.errors import TimedOut
from kafka_rescale.lifecycle.instance import Instance

log = logging.getLogger(__name__)
_POLL_SECONDS = 0.5
LINGERS = (
    "When all have ended, say so: python -m kafka_rescale stopped FILE. Else a classic group shows it only when "
    "session.timeout.ms is over, 45 s by default, unless the program closes with CloseOptions that leave the group"
)


class Person:
    """Asks a person through the task's log.

    :param spec: the section of the application file.
    :param has_members: whether a group has live members, by name of the group.
    """

    def __init__(self, spec: ManualLifecycle, has_members: Callable[[str], bool]) -> None:
        self._spec = spec
        self._has_members = has_members

    def start(self, instance: Instance) -> None:
        """Ask for a start and wait until the group has members."""
        what = f"START {instance.application_id} for {instance.partitions} partitions{_reading(instance)}"
        self._ask(what, self._spec.instructions, instance, running=True)

    def start_gated(self, instance: Instance) -> None:
        """Ask for a start behind the warm-up gate and wait until the group has members."""
        what = f"START {instance.application_id} BEHIND THE WARM-UP GATE for {instance.partitions} partitions"
        self._ask(f"{what}{_reading(instance)}", self._spec.start_gated or "", instance, running=True)

    def stop(self, instance: Instance) -> None:
        """Ask for a stop and wait until the group has no members."""
        what = f"STOP every instance of {instance.application_id}"
        self._ask(what, f"{self._spec.instructions} ({LINGERS})".strip(), instance, running=False)

    def is_running(self, instance: Instance) -> bool:
        """Return whether the group has members; a person is not asked."""
        return self._has_members(instance.application_id)

    def _ask(self, what: str, instructions: str, instance: Instance, *, running: bool) -> None:
        deadline = time.monotonic() + self._spec.timeout_seconds
        log.warning("PLEASE %s NOW. %s", what, instructions)
        while self._has_members(instance.application_id) is not running:
            if time.monotonic() > deadline:
                raise TimedOut(
                    f"a person to do by hand what the manual lifecycle asks: {what}",
                    seconds=self._spec.timeout_seconds,
                    remedy="Do it and retry the task, or let it roll back.",
                )
            time.sleep(_POLL_SECONDS)


def _reading(instance: Instance) -> str:
    reading = ", ".join(f"{topic} as {name}" for name, topic in instance.inputs.items() if topic != name)
    return f", reading {reading}" if reading else ""
