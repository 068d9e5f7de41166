"""Deleting the days that are no longer kept, of every store that the application has or once had."""

from __future__ import annotations

from kafka_rescale.core.snapshots.day import SnapshotDay
from kafka_rescale.spark.jobs.job import say
from kafka_rescale.spark.snapshots.files import StoreDirectory


def expire(location: str, application: str, last: SnapshotDay) -> set[SnapshotDay]:
    """Delete the days up to a last day, and return them.

    They are found by their directories. A run that was killed while it deleted a day has left rows without a
    manifest, and a store that is no longer declared has left its days.

    :param location: location that the application file names.
    :param last: the newest day that is too old.
    """
    expired: set[SnapshotDay] = set()
    for directory in StoreDirectory.all_of(location, application):
        # Drafts come first: a run that publishes a day has its draft until the manifest is in its place.
        drafts = {name: day for name, day in directory.drafts().items() if day <= last}
        for name in drafts:
            say(f"not deleted: {directory.uri}/{name}: delete it by hand, unless a run of that day is at work")
        for day in (day for day in directory.days() if day <= last and day not in drafts.values()):
            if directory.is_own(day):
                say(f"deleting {directory.uri} {day}")
                directory.forget(day)
                expired.add(day)
            else:
                say(f"not deleted: {directory.uri}/date={day}: it holds what no run for this store has written")
    return expired
