"""Notifications that an application file declares: notifiers of Airflow, their arguments and events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from pydantic import Field, field_validator

from kafka_rescale.core.application.fields import Strict
from kafka_rescale.core.application.mistakes import WrongValue
from kafka_rescale.core.application.secrets import address_with_secret


class Event(StrEnum):
    """What a person may want to be told.

    ``approval``: a run waits for an answer. ``complete``: an expansion is verified and has ended. ``failed``: a
    task has failed for good. ``rolled_back``: the running generation goes on as it was. ``autoscaling``: the watch
    has an error, or has given up. ``long_pause``: the application is stopped for longer than
    ``pause_alert_seconds``. ``skipped``: a run of the schedule did not happen.
    """

    APPROVAL = "approval"
    COMPLETE = "complete"
    FAILED = "failed"
    ROLLED_BACK = "rolled_back"
    AUTOSCALING = "autoscaling"
    LONG_PAUSE = "long_pause"
    SKIPPED = "skipped"


_SECRET = re.compile(
    r"pass(word|wd|phrase)|pwd|secret|token|credential|authorization|webhook|^key$|(^|[_-])tok$"
    r"|(api|access|account|auth|integration|licen[cs]e|private|routing|service|shared|signing|storage)[_-]?key",
    re.IGNORECASE,
)
"""Common names of secrets. Others are not recognised. A `dedup_key` of an alert is none."""
_CONNECTION = re.compile(r"conn(ection)?_id$")


class Notification(Strict):
    """One notifier and the events that it is told.

    :param notifier: ``module:Class`` of a notifier of Airflow (``BaseNotifier``), of a provider or of your own.
    :param arguments: arguments of its constructor. Texts are Jinja templates if the notifier declares them so.
        They can use ``rescale`` and everything that Airflow gives a task. Put credentials into a connection, and
        let an argument name it.
    :param events: the events that it is told; all by default.
    """

    notifier: str = Field(pattern=r"^[\w.]+:\w+$")
    arguments: dict[str, Any] = Field(default_factory=dict)
    events: tuple[Event, ...] = Field(default=tuple(Event), min_length=1)

    @field_validator("arguments")
    @classmethod
    def _no_secrets(cls, value: dict[str, Any]) -> dict[str, Any]:
        if found := next(_secrets(value), None):
            raise WrongValue(
                found=found,
                expected="the id of an Airflow connection that holds it: many may read this file",
                remedy="Put it into a connection, and name that by the notifier's argument for it, often "
                "…_conn_id.",
            )
        return value


def _secrets(value: object, name: str = "") -> Iterator[str]:
    """Yield the place of each value that looks like a secret, by its name or in an address."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _secrets(inner, str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _secrets(inner, name)
    elif value is not None and _SECRET.search(name) and not _CONNECTION.search(name):
        yield f"an argument `{name}`"
    elif isinstance(value, str) and (found := address_with_secret(value)):
        yield f"{found} in `{name}`"
