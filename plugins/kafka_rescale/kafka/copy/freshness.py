"""How old a copy is: the last time as of which all records of the source have been copied.

A tombstone lives for ``delete.retention.ms`` after the first compaction that sees it. A reader that gets from one
known end to the next within that time sees every tombstone. A slower reader may miss some: deleted entries would
live on in the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.kafka.copy.settings import StaleCopy
from kafka_rescale.kafka.copy.writer import UnitWriter
from kafka_rescale.kafka.reading.source_rules import SourceRules


class Freshness:
    """Follows the ends that units have to reach, and dates their marks when they do.

    :param rules: per source topic.
    :param clock: wall clock in ms.
    """

    def __init__(self, rules: Mapping[str, SourceRules], clock: Callable[[], int]) -> None:
        self._rules, self._clock = rules, clock
        self._goals: dict[TopicPartition, tuple[int, int]] = {}

    def aim(self, ends: Mapping[TopicPartition, int], asked_ms: int) -> None:
        """Set ends to reach. A unit that has not reached its earlier end yet keeps that end.

        :param asked_ms: wall clock before the ends were asked for.
        """
        for source, end in ends.items():
            self._goals.setdefault(source, (end, asked_ms))

    def without_goal(self, sources: Mapping[TopicPartition, UnitWriter]) -> list[TopicPartition]:
        """Return the sources that have reached their ends."""
        return [source for source in sources if source not in self._goals]

    @property
    def ends(self) -> dict[TopicPartition, int]:
        """The ends (exclusive) that are still to be reached."""
        return {source: end for source, (end, _) in self._goals.items()}

    def check(self, writers: Mapping[TopicPartition, UnitWriter]) -> None:
        """Date the marks of units that have reached their ends.

        :raises StaleCopy: a unit took so long that it may have missed tombstones.
        """
        for source, (end, asked_ms) in list(self._goals.items()):
            writer, allowed = writers[source], self._rules[source[0]].tombstone_ms
            age = self._clock() - writer.mark.as_of_ms
            if allowed is not None and age > allowed:
                raise StaleCopy(f"copy of {writer.unit}", age, allowed)
            if writer.position >= end:
                writer.mark = replace(writer.mark, as_of_ms=max(asked_ms, writer.mark.as_of_ms))
                del self._goals[source]
