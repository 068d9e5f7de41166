"""What a person has accepted of verify's findings: misrouted records, which nobody can take back.

They stay in their input until retention deletes them, and were processed long ago. An acceptance names the offsets
of one partition, all of them written by then, so nothing that is written later can be within it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import NamedTuple

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.values import Value

_FINDING = re.compile(r"(?P<topic>\S+)-(?P<partition>\d+):(?P<first>\d+)-(?P<last>\d+)")


class FindingId(NamedTuple):
    """The name of a finding: misrouted records of one partition, ``<topic>-<partition>:<first>-<last>``.

    :param last: offset of the last one, inclusive; ``first`` and ``last`` are misrouted, not all between them are.
    """

    topic: str
    partition: int
    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> FindingId:
        """Return the finding of this name.

        :raises InvalidInput: it is none.
        """
        found = _FINDING.fullmatch(text.strip())
        if found is None or int(found["first"]) > int(found["last"]):
            raise InvalidInput(
                "finding",
                found=repr(text),
                expected="<topic>-<partition>:<first offset>-<last offset>, as verify reports it",
                remedy="Copy it from the log of verify or callback; or see `python -m kafka_rescale status FILE`.",
            )
        return cls(found["topic"], int(found["partition"]), int(found["first"]), int(found["last"]))

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}:{self.first}-{self.last}"


class Acceptance(Value):
    """One finding, and who has accepted it.

    :param plan: fingerprint of the plan whose expansion it was found after; it counts for no other.
    :param records: how many misrouted records there were in it.
    :param at_ms: wall clock.
    """

    plan: str
    topic: str
    partition: int
    first: int
    last: int
    records: int
    by: str
    at_ms: int
    reason: str

    @property
    def finding(self) -> FindingId:
        """What was accepted."""
        return FindingId(self.topic, self.partition, self.first, self.last)

    def covers(self, partition: int, offset: int) -> bool:
        """Whether a record of the topic is within it."""
        return partition == self.partition and self.first <= offset <= self.last

    def __str__(self) -> str:
        at = datetime.fromtimestamp(self.at_ms / 1000, UTC).isoformat(timespec="seconds")
        return f"{self.finding}: {self.records:,} records, accepted by {self.by} at {at}: {self.reason}"


class Acceptances(Value):
    """Everything that was ever accepted of an application, the oldest first."""

    accepted: tuple[Acceptance, ...] = ()

    def of(self, plan: str, topic: str) -> tuple[Acceptance, ...]:
        """Return what counts for a topic after the expansion by a plan.

        :param plan: its fingerprint.
        """
        return tuple(a for a in self.accepted if a.plan == plan and a.topic == topic)
