"""Typed errors across the border between a task's process and the driver, which Spark crosses with text only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from kafka_rescale.core import errors
from kafka_rescale.core.errors import RescaleError
from kafka_rescale.core.pipeline.failure import told

_MARK = "kafka-rescale-error "


class TaskFailure(Exception):
    """A typed error as text, raised in a task."""


@contextmanager
def as_text() -> Iterator[None]:
    """Turn typed errors, and those of a pipeline's own functions, into text that ``from_text`` understands."""
    try:
        yield
    except RescaleError as error:
        raise TaskFailure(_text(error)) from error.__cause__
    except Exception as error:
        typed = told(error)
        if typed is None:
            raise
        raise TaskFailure(_text(typed)) from error


def from_text(failure: Exception) -> Exception:
    """Return the typed error that a failed Spark job was caused by, or the failure itself."""
    text = str(failure)
    at = text.find(_MARK)
    if at < 0:
        return failure
    fields = json.JSONDecoder().raw_decode(text, at + len(_MARK))[0]
    kind: type[RescaleError] = getattr(errors, fields.pop("kind"))
    args = fields.pop("args")
    error = kind(**fields)
    # A wait that timed out has its own words.
    error.args = tuple(args)
    return error


def _text(error: RescaleError) -> str:
    kind = next(c.__name__ for c in type(error).__mro__ if getattr(errors, c.__name__, None) is c)
    fields = {"what": error.what, "found": error.found, "expected": error.expected, "remedy": error.remedy}
    return _MARK + json.dumps({"kind": kind, **fields, "args": error.args})
