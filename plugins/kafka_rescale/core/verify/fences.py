"""Positions of a running copy, with ends of its topics: which part of blue's log is in which part of green's?"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.values import Value


class Fences(Value):
    """Positions of a running copy, and what they say about the logs. ``kafka.copy.fences`` reads them.

    :param begun: per blue changelog partition, a position of the copy: everything below it is in green below
        ``green_begun``.
    :param green_begun: ends of green: nothing that was copied from blue at or behind ``fence`` stands below them.
    :param fence: a later position: everything of blue below it is in green below ``green_ends``.
    :param green_ends: ends of green; it may hold later records as well below them.
    :param green_begins: log starts of green, read first.
    :param green_topics: ids of green's topics, read first.
    :param green_compacted: those of green's topics that brokers only compact, and never delete from. Their log
        starts never move, unless a person deletes records.
    :param green_restarts: of the other topics, when their copies were last begun anew, in ms since the epoch; 0 if
        they never were. Retention may delete all that was compared in a partition, so log starts don't tell
        whether a copy is still the same. An earlier version has not noted it.
    :param blue_ends: positions of the copy, read last: no copy below ``green_ends`` is of a record at or behind
        them. In a record of an earlier version, ends of blue.
    :param as_of_ms: wall clock just before ``fence`` was read.
    :param copied_as_of_ms: by blue's topics, the earliest ``as_of_ms`` of the copy's marks: of the keys that it
        has copied, no deletion at or behind ``begun`` was compacted before.
    """

    begun: PartitionOffsets
    green_begun: PartitionOffsets
    fence: PartitionOffsets
    green_ends: PartitionOffsets
    green_begins: PartitionOffsets
    green_topics: dict[str, str]
    blue_ends: PartitionOffsets
    as_of_ms: int
    copied_as_of_ms: dict[str, int]
    green_compacted: tuple[str, ...] = ()
    green_restarts: dict[str, int] = Field(default_factory=dict, exclude_if=lambda of: not of)

    def lost(self, present: Mapping[str, str], begins: PartitionOffsets, restarts: Mapping[str, int]) -> str:
        """Return how green's topics have lost what stood below these ends; an empty text if they have not.

        :param present: ids of green's topics now.
        :param begins: log starts of green's topics now.
        :param restarts: ``green_restarts`` now. Where it isn't known, the log starts have to tell.
        """
        for topic, known in self.green_topics.items():
            if present.get(topic) != known:
                return f"topic {topic!r} was made anew since, or is gone"
            noted, restarted = self.green_restarts.get(topic), restarts.get(topic)
            is_told = noted is not None and restarted is not None
            if is_told and noted != restarted:
                return f"topic {topic!r} was emptied since, because its copy was begun anew"
            for p, begin in self.green_begins[topic].items():
                now = begins.get(topic, {}).get(p, 0)
                ends = self.green_begun[topic][p], self.green_ends[topic][p]
                if not is_told and any(begin < end <= now for end in ends):
                    return f"topic {topic!r} was emptied since (partition {p})"
                if topic in self.green_compacted and begin < now:
                    return f"records were deleted from topic {topic!r} since (partition {p}, {begin} to {now - 1})"
        return ""
