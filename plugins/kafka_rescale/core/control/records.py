"""The records of the control topic: which model reads which key, and what several of them mean together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from kafka_rescale.core.control.acceptances import Acceptances
from kafka_rescale.core.control.autoscaling import Autoscaling
from kafka_rescale.core.control.bridge import Bridge, ReplacedBridges
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.history import PastExpansion
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.keys import CONTROL_TOPIC, Concern
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.pace import Pace, Rate
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Switch
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.values import Value

Read = TypeVar("Read", bound=BaseModel)

Change = Mapping[str, Value | Mapping[str, object] | None]
"""What to write: the key's part after ``<application>/``, and its new value (``None`` deletes it)."""

_MODELS: dict[str, type[BaseModel]] = {
    Concern.LEASE: Lease,
    Concern.JOURNAL: Journal,
    Concern.SWITCH: Switch,
    Concern.PACE: Pace,
    Concern.GENERATIONS: Generations,
    Concern.BRIDGE: Bridge,
    Concern.REPLACED: ReplacedBridges,
    Concern.AUTOSCALING: Autoscaling,
    Concern.ACCEPTANCES: Acceptances,
    Concern.PROCESSING: Processing,
    Concern.PROCESSORS: PipelineProcessors,
}
_SEVERAL: dict[str, tuple[str, type[Value]]] = {
    Concern.RESULT: ("results", JobResult),
    Concern.RATE: ("rates", Rate),
    Concern.HISTORY: ("history", PastExpansion),
}
"""Concerns with several records each, whose keys go on behind a slash: the state's field, and the model."""
_AS_WRITTEN: dict[str, str] = {
    Concern.REPORT: "report",
    Concern.PROOF: "proof",
    Concern.PROOF_PROGRESS: "proof_progress",
    Concern.ROLLING_PROOF: "rolling_proof",
}
"""Concerns that are kept as they were written, with their fields: ``core.verify`` knows them."""
_OF_JOBS = {Concern.BRIDGE, Concern.PROOF_PROGRESS, Concern.ROLLING_PROOF}
"""Concerns that jobs write beside their results, again and again."""
_OF_EACH_JOB = tuple(f"{concern}/" for concern in (Concern.RESULT, Concern.RATE, Concern.SIGN))


class ControlRecords:
    """Parses the records of one application, each of them once.

    Within the pause the same records are asked for again and again, and with thousands of partitions some of them
    are large.
    """

    def __init__(self) -> None:
        self._parsed: dict[str, tuple[bytes, object]] = {}

    def state(self, values: Mapping[str, bytes]) -> ControlState:
        """Return what the records mean together.

        :param values: by key behind ``<application>/``; a key of a later version is left out.
        :raises UnsafeState: a newer version of the program has written a record.
        """
        # Threads may ask at the same time: each of them goes on with its own records.
        parsed_of = self._parsed = {key: self._once(key, value) for key, value in values.items()}
        fields: dict[str, object] = {}
        several: dict[str, dict[str, object]] = {field: {} for field, _ in _SEVERAL.values()}
        for key, (_, parsed) in parsed_of.items():
            concern, _, detail = key.partition("/")
            if concern in _SEVERAL:
                several[_SEVERAL[concern][0]][detail] = parsed
            elif concern in _MODELS or concern in _AS_WRITTEN:
                fields[_AS_WRITTEN.get(concern, concern)] = parsed
        return ControlState.model_validate({**fields, **several})

    def _once(self, key: str, value: bytes) -> tuple[bytes, object]:
        known = self._parsed.get(key)
        return known if known is not None and known[0] == value else (value, _parsed(key, value))


def _parsed(key: str, value: bytes) -> object:
    """Return a record's content; None if its key belongs to no concern that is read here."""
    concern = key.partition("/")[0]
    if concern in _MODELS:
        return record_of(_MODELS[concern], key, value)
    if concern in _SEVERAL:
        return record_of(_SEVERAL[concern][1], key, value)
    if concern not in _AS_WRITTEN:
        return None
    try:
        return json.loads(value)
    except ValueError as error:
        raise _unreadable(key, error) from None


def record_of(model: type[Read], key: str, value: bytes) -> Read:
    """Return a record's content.

    :param key: the key behind ``<application>/``, for the error.
    :raises UnsafeState: this version of the program can't read the record.
    """
    try:
        return model.model_validate_json(value)
    except ValidationError as error:
        raise _unreadable(key, error) from None


def _unreadable(key: str, error: Exception) -> UnsafeState:
    # Every version reads what earlier versions have written. So the version that wrote this is newer.
    return UnsafeState(
        f"record {key!r} in topic {CONTROL_TOPIC!r}",
        found=f"a {type(error).__name__}",
        expected="a record that this version of the program can read",
        remedy="A newer version has written it. Install that version everywhere: for all of Airflow, for shells, "
        "and in the jar of the gates. Then clear the task. Don't go back to an earlier version.",
    )


def encoded(value: Value | Mapping[str, object] | None) -> bytes | None:
    """Return a record's value as bytes; None for a record that is to be deleted."""
    if value is None:
        return None
    if isinstance(value, BaseModel):
        return value.model_dump_json().encode()
    return json.dumps(value).encode()


def changed(values: Mapping[str, bytes], records: Mapping[str, bytes | None]) -> dict[str, bytes]:
    """Return the values as the next reader will see them, when some records have been written."""
    return {key: value for key, value in {**values, **records}.items() if value is not None}


def decided(values: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the records from which changes are decided. Jobs write their own records at any time."""
    return {k: value for k, value in values.items() if k not in _OF_JOBS and not k.startswith(_OF_EACH_JOB)}
