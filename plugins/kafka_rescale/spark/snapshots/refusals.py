"""Why the state as of a day can't be told. Where a later day is exact, the error names the first such day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.core.snapshots.day import LATEST_END_MS, SnapshotDay
from kafka_rescale.core.snapshots.request import SnapshotRequest
from kafka_rescale.core.snapshots.source import SnapshotSource


def not_over(request: SnapshotRequest) -> InvalidInput:
    """Return the error about a day in the future, or today."""
    return InvalidInput(
        _what(request),
        found="a day that is not over",
        expected="a day in the past, UTC",
        remedy="Wait for the scheduled run.",
    )


def too_old(request: SnapshotRequest, newest: SnapshotDay) -> InvalidInput:
    """Return the error about a day that would be deleted at once.

    :param newest: the newest day that exists.
    """
    return InvalidInput(
        _what(request),
        found=f"a day that is not kept: the newest is {newest}, keep_days {request.keep_days}",
        expected="a day that stays",
        remedy="Raise `keep_days` first.",
    )


def missing(
    request: SnapshotRequest, source: SnapshotSource, topics: Sequence[str], known: Generations | None
) -> Refused:
    """Return the error about changelogs, or topics that it has read, that don't exist."""
    return Refused(
        _what(request),
        found=f"no topic {', '.join(topics)} of the generation {source.generation}",
        expected="the topics of the generation that was at work then",
        remedy="Start the application once, or correct `stores:`."
        if source.is_running
        else f"It was retired, or somebody has deleted the topic. {_first_of_running(known)}",
    )


def left_unprocessed(
    request: SnapshotRequest, source: SnapshotSource, left: Sequence[str], known: Generations | None
) -> Refused:
    """Return the error about a day that two generations have processed."""
    return Refused(
        _what(request),
        found=f"records of that day that {source.generation} left to its successor: {', '.join(left[:3])}",
        expected="a day that one generation has processed to its end",
        remedy=_first_of_running(known),
    )


def damaged(
    request: SnapshotRequest, topics: Sequence[str], moments: Iterable[int | None], *, is_held: bool = False
) -> Refused:
    """Return the error about changelogs that have lost records that the day needs.

    :param moments: by partition, the first exact moment in ms; None if there is no such moment.
    :param is_held: whether the history of a versioned store is not known, because an expansion holds compaction.
    """
    found = list(moments)
    known = [moment for moment in found if moment is not None and moment <= LATEST_END_MS]
    first = SnapshotDay.first_ending_from(max(known)) if len(known) == len(found) else None
    unknown = (
        "An expansion holds compaction, so the history of the versioned stores is not known. Wait "
        "until verify has passed; then run this day again."
        if is_held
        else "No day is exact until the application has written more behind what was cleaned. For a table whose "
        "topic deletes by age there will be none: take its store out of `snapshots.stores`, or keep the records."
    )
    return Refused(
        _what(request),
        found=f"records that log cleaning or retention has removed from {', '.join(topics)}",
        expected="all records that the state as of the end of that day needs",
        remedy=f"The first exact day is {first}." if first else unknown,
    )


def _first_of_running(known: Generations | None) -> str:
    return f"The first exact day is {SnapshotDay.first_ending_from(known.since_ms if known else 0)}."


def _what(request: SnapshotRequest) -> str:
    return f"snapshot of {request.application} for {request.date}"
