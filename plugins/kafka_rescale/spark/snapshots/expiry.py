"""Deleting the days that are no longer kept, of every store that the application has or once had."""

from __future__ import annotations

from kafka_rescale.core.snapshots.day import DAY_MS, SnapshotDay
from kafka_rescale.spark.jobs.job import say
from kafka_rescale.spark.snapshots.files import StoreDirectory

ABANDONED_MS = 7 * DAY_MS
"""A run that is at work has written something into its draft meanwhile: a file for each partition."""


def expire(location: str, application: str, last: SnapshotDay, now_ms: int) -> set[SnapshotDay]:
    """Delete the days up to a last day, and return them.

    They are found by their directories. A run that was killed while it deleted a day has left rows without a
    manifest, and a store that is no longer declared has left its days. A draft of such a day is deleted when it is
    abandoned: no further run of that day would do it, because the day is refused.

    :param location: location that the application file names.
    :param last: the newest day that is too old.
    :param now_ms: wall clock, in ms since the epoch.
    """
    expired: set[SnapshotDay] = set()
    for directory in StoreDirectory.all_of(location, application):
        # Drafts come first: a run that publishes a day has its draft until the manifest is in its place.
        old = {name: day for name, day in directory.drafts().items() if day <= last}
        drafts = {name: day for name, day in old.items() if not _discarded(directory, name, now_ms)}
        for day in (day for day in directory.days() if day <= last and day not in drafts.values()):
            if directory.is_own(day):
                say(f"deleting {directory.uri} {day}")
                directory.forget(day)
                expired.add(day)
            else:
                say(f"not deleted: {directory.uri}/date={day}: it holds what no run for this store has written")
    return expired


def _discarded(directory: StoreDirectory, draft: str, now_ms: int) -> bool:
    """Delete a draft of a day that is too old if it is abandoned. Return whether it was."""
    place, written_ms = f"{directory.uri}/{draft}", directory.written_ms(draft)
    if written_ms is None:
        say(f"not deleted: {place}: delete it by hand, unless a run of that day is at work")
    elif now_ms - written_ms <= ABANDONED_MS:
        say(f"not deleted: {place}: a run may be at work on that day; it goes a week after its last file")
    else:
        say(f"deleting {place}: nothing was written into it for a week")
        directory.discard(draft)
        return True
    return False
