"""Records that blue wrote to its changelogs after it was proven gone: one of its instances survived the stop."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_rescale.core.control.acceptances import LOST, OffsetRange
from kafka_rescale.core.control.journal import Journal


def late_writes(journal: Journal, ends: Mapping[str, Mapping[int, int]]) -> tuple[OffsetRange, ...]:
    """Return the offsets behind the captured ends, for the changelogs whose present ends are given.

    :param ends: present ends by topic and partition, transaction markers included.
    """
    captured = journal.captured.changelog_ends if journal.captured else {}
    return tuple(
        OffsetRange(topic, partition, captured[topic][partition], end - 1)
        for topic in sorted(ends)
        for partition, end in sorted(ends[topic].items())
        if end > captured[topic].get(partition, end)
    )


def lost_changelogs(journal: Journal, ends: Mapping[str, Mapping[int, int]]) -> dict[str, int]:
    """Return the changelogs that were deleted since they were captured, or that a running instance made anew.

    :param ends: present ends of all of blue's changelogs that exist.
    :returns: how many offsets each had when it was captured, by the name of the finding. This is
        ``lost:<topic>``, or ``lost:<topic>:<offsets>`` for another topic with so many offsets by now. So nobody
        accepts what is written later.
    """
    captured = journal.captured.changelog_ends if journal.captured else {}
    return {
        f"{LOST}{topic}" + (f":{sum(ends[topic].values())}" if topic in ends else ""): sum(partitions.values())
        for topic, partitions in sorted(captured.items())
        if ends.get(topic, {}).keys() != partitions.keys()
        or any(ends[topic][partition] < end for partition, end in partitions.items())
    }
