"""Typed errors on their way from a task's process to the driver: Spark carries only text across."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from kafka_rescale.core.control.job_failure import JobFailure
from kafka_rescale.core.errors import RescaleError
from kafka_rescale.core.pipeline.failure import told

_MARK = "kafka-rescale-error "


class TaskFailure(Exception):
    """A typed error as text, raised in a task."""


@contextmanager
def as_text() -> Iterator[None]:
    """Turn typed errors, and errors of a pipeline's own functions, into text that ``from_text`` understands."""
    try:
        yield
    except Exception as error:
        found = typed(error)
        if found is None:
            raise
        raise TaskFailure(_text(found)) from found.__cause__


def typed(error: Exception) -> RescaleError | None:
    """Return a typed error, or the message about an error of a pipeline's own function; None for any other."""
    if isinstance(error, RescaleError):
        return error
    found = told(error)
    if found is not None:
        found.__cause__ = error
    return found


def from_text(failure: Exception) -> Exception:
    """Return the typed error that made a Spark job fail, or the failure itself."""
    text = str(failure)
    at = text.find(_MARK)
    if at < 0:
        return failure
    return JobFailure.model_validate(json.JSONDecoder().raw_decode(text, at + len(_MARK))[0]).error


def _text(error: RescaleError) -> str:
    return _MARK + JobFailure.of(error).model_dump_json()
