"""Errors of the pipeline's functions, reported with the record at which the function failed."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path

from kafka_rescale.core.errors import RescaleError
from kafka_rescale.core.pipeline.task import Record

_HEAD = "While a pipeline processed "
_CULPRIT = "kafka_rescale_culprit"
_FLUSHED = "kafka_rescale_flushed"


def note(error: Exception, task: str, records: Sequence[Record]) -> None:
    """Add a note to an error. The note names the records that the task was processing.

    The error keeps its type, because this function also gets errors of a store, for example of its brokers.

    :param task: the id of the task.
    :param records: the records that were handed to the function that has failed.
    """
    ends = dict.fromkeys(f"{r.topic}-{r.partition} at offset {r.offset}" for r in (records[0], records[-1]))
    error.add_note(f"{_HEAD}{'record' if len(ends) == 1 else 'records'} {' to '.join(ends)} in task {task}")
    if len(records) == 1:
        blame(error, records[0])


def note_flush(error: Exception, task: str) -> None:
    """Add a note to an error. The note says that the task was writing its record cache.

    The note names no record, because the task processed the record that caused the error long before.

    :param task: the id of the task.
    """
    error.add_note(f"{_HEAD}updates of its record cache in task {task}")
    error.__dict__[_FLUSHED] = True


def came_of_cache(error: Exception) -> bool:
    """Return whether the error was raised while a task wrote its record cache (``note_flush``)."""
    return bool(error.__dict__.get(_FLUSHED))


def blame(error: Exception, record: Record) -> None:
    """Attach to an error the record that has caused it."""
    error.__dict__[_CULPRIT] = record


def culprit(error: Exception) -> Record | None:
    """Return the record that has caused an error, if it is known."""
    found = error.__dict__.get(_CULPRIT)
    return found if isinstance(found, Record) else None


def told(error: Exception) -> RescaleError | None:
    """Return the message about an error that has a note of this module, or None for any other error.

    The message is a plain ``RescaleError``, which may be retried: this module can't know whether the function
    fails again.
    """
    noted = [text for text in getattr(error, "__notes__", ()) if text.startswith(_HEAD)]
    if not noted:
        return None
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return RescaleError(
        noted[0].removeprefix(_HEAD),
        found=f"{type(error).__name__}: {error}"[:400] + f" ({Path(frame.filename).name}, line {frame.lineno})",
        expected="functions of the pipeline that take every record",
        remedy="Mend the function, or leave such records out by filter; then run again. The run goes on from its "
        "last commit. Nothing was written since then.",
    )
