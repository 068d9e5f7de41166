"""What a person has accepted of verify's findings, so that an expansion can be brought to its end.

A misrouted record stays in its input until retention deletes it, and was processed long ago; what a copy lacks
below the promotion's offsets, it lacks for good; what a surviving blue has written stays written. An acceptance
names exactly what was seen: the offsets of one partition, all of them written by then, or the outcome of one
store's comparison, or a changelog that blue has lost. Anything else is a finding again.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kafka_rescale.core.values import Value, moment

LOST = "lost:"
_RANGE = re.compile(r"(?P<topic>\S+)-(?P<partition>\d+):(?P<first>\d+)-(?P<last>\d+)")


class OffsetRange(NamedTuple):
    """The name of records of one partition, ``<topic>-<partition>:<first>-<last>``.

    :param last: offset of the last record, inclusive. In a range of misrouted records, ``first`` and ``last`` are
        misrouted; the records between them may be in place.
    """

    topic: str
    partition: int
    first: int
    last: int

    @classmethod
    def parse(cls, finding: str) -> OffsetRange | None:
        """Return the range that a finding names; None if it names no range."""
        found = _RANGE.fullmatch(finding)
        if found is None or int(found["first"]) > int(found["last"]):
            return None
        return cls(found["topic"], int(found["partition"]), int(found["first"]), int(found["last"]))

    def covers(self, partition: int, offset: int) -> bool:
        """Whether a record of the topic is within it."""
        return partition == self.partition and self.first <= offset <= self.last

    def has(self, part: OffsetRange) -> bool:
        """Whether all of another range is within it."""
        ends = (part.first, part.last)
        return part.topic == self.topic and all(self.covers(part.partition, offset) for offset in ends)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}:{self.first}-{self.last}"


class Acceptance(Value):
    """One finding, and the person who has accepted it.

    :param plan: fingerprint of the plan of the expansion; the acceptance counts for no other expansion.
    :param finding: ``<topic>-<partition>:<first>-<last>`` (misrouted, or written by a surviving blue),
        ``<store>@<digest>`` (compared), or ``lost:<topic>`` (a changelog of blue; of another topic by its name,
        ``lost:<topic>:<offsets>``).
    :param records: how many misrouted records, offsets, or violations there were.
    :param at_ms: wall clock.
    """

    plan: str
    finding: str
    records: int
    by: str
    at_ms: int
    reason: str

    @property
    def topic(self) -> str:
        """The topic of the records or of the lost changelog; empty if it is about a comparison."""
        if self.finding.startswith(LOST):
            return self.finding.split(":")[1]
        found = OffsetRange.parse(self.finding)
        return found.topic if found is not None else ""

    def __str__(self) -> str:
        return f"{self.finding}: {self.records:,} accepted by {self.by} at {moment(self.at_ms)}: {self.reason}"


class Acceptances(Value):
    """Everything that was ever accepted of an application, the oldest first."""

    accepted: tuple[Acceptance, ...] = ()

    def of(self, plan: str) -> dict[str, Acceptance]:
        """Return the acceptances that count after the expansion by a plan, by finding.

        :param plan: its fingerprint.
        """
        return {a.finding: a for a in self.accepted if a.plan == plan}

    def ranges(self, plan: str, topic: str) -> tuple[OffsetRange, ...]:
        """Return the accepted misrouted records of a topic."""
        named = map(OffsetRange.parse, self.of(plan))
        return tuple(found for found in named if found is not None and found.topic == topic)
