"""A function of the pipeline that fails, told by the record that it failed with."""

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
    """Note at an error which records were processed when it came up.

    It stays what it is: what a store has met with its brokers comes by here as well.

    :param task: its id.
    :param records: that were handed to what has failed.
    """
    ends = dict.fromkeys(f"{r.topic}-{r.partition} at offset {r.offset}" for r in (records[0], records[-1]))
    error.add_note(f"{_HEAD}{'record' if len(ends) == 1 else 'records'} {' to '.join(ends)} in task {task}")
    if len(records) == 1:
        blame(error, records[0])


def note_flush(error: Exception, task: str) -> None:
    """Note at an error that it came up when the record cache was written: its record came long before.

    :param task: its id.
    """
    error.add_note(f"{_HEAD}updates of its record cache in task {task}")
    error.__dict__[_FLUSHED] = True


def came_of_cache(error: Exception) -> bool:
    """Return whether something has failed with updates that the record cache had kept back."""
    return bool(error.__dict__.get(_FLUSHED))


def blame(error: Exception, record: Record) -> None:
    """Note at an error which record it is about."""
    error.__dict__[_CULPRIT] = record


def culprit(error: Exception) -> Record | None:
    """Return the record with which something has failed, if it is known to have been that one."""
    found = error.__dict__.get(_CULPRIT)
    return found if isinstance(found, Record) else None


def told(error: Exception) -> RescaleError | None:
    """Return what there is to say of an error that was noted; None of any other.

    It is none of those that are never retried: whether a function fails again is not known here.
    """
    noted = [text for text in getattr(error, "__notes__", ()) if text.startswith(_HEAD)]
    if not noted:
        return None
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return RescaleError(
        noted[0].removeprefix(_HEAD),
        found=f"{type(error).__name__}: {error}"[:400] + f" ({Path(frame.filename).name}, line {frame.lineno})",
        expected="functions of the pipeline that take every record",
        remedy="Mend the function, or leave such a record out by filter; then run again. The run goes on from its "
        "last commit, and nothing was written since.",
    )
