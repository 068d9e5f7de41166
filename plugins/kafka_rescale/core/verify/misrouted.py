"""Records of a grown input in the partitions where they belonged before the growth.

A producer whose metadata is older than the growth (up to ``metadata.max.age.ms``) still writes keys to the
partitions of the old count. The task that owns such a partition has no state of the key. A producer that chooses
partitions itself is another case: neither count puts its records where they are, and restarting it changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.control.acceptances import OffsetRange
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.partitioning.partitioners import earlier_homes, is_spread, partitioner_named
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.values import Value

SHOWN = 10
_BATCH = 2_000


class Misrouted(Value):
    """One record.

    :param key: in hex.
    :param home: the partition where the key's state is.
    """

    partition: int
    offset: int
    key: str
    home: int

    def __str__(self) -> str:
        return (
            f"partition {self.partition} offset {self.offset}: key 0x{self.key} belongs to partition {self.home}"
        )


class Span(Value):
    """The records of a finding in a partition, from the offset of the first to that of the last, inclusive."""

    partition: int
    first: int
    last: int
    records: int


class InputReport(Value):
    """The findings in one input from the fence on.

    :param records: number of records checked.
    :param misrouted: number of misrouted records that were not accepted; ``first`` has some of them.
    :param spans: all misrouted records by partition.
    :param accepted: number of misrouted records that were accepted.
    :param chosen: number of misrouted records that the old count would not put there either.
    """

    topic: str
    records: int
    misrouted: int
    first: tuple[Misrouted, ...] = ()
    spans: tuple[Span, ...] = ()
    accepted: int = 0
    chosen: int = 0

    @property
    def where(self) -> str:
        """Where the misrouted records lie. This tells which kind of producer has put them there."""
        stale = self.misrouted - self.chosen
        if not self.chosen:
            return "in partitions of the old count"
        if not stale:
            return "in partitions that their producer has chosen: neither count puts their keys there"
        reasons = f"{stale} by the old count, {self.chosen} by their producer's choice"
        return f"in other partitions than their keys' ({reasons})"

    @property
    def findings(self) -> tuple[OffsetRange, ...]:
        """The findings that a person may accept."""
        return tuple(OffsetRange(self.topic, s.partition, s.first, s.last) for s in self.spans)


@dataclass(frozen=True)
class Place:
    """The place of a record."""

    partition: int
    offset: int
    key: bytes | None


def grown_by_key(plan: Plan) -> tuple[InputPlan, ...]:
    """Return the inputs that the expansion grows and whose keys decide where state is."""
    return tuple(i for i in plan.inputs if i.policy is InputPolicy.PAUSED and i.grows)


def misrouted(
    grown: InputPlan, places: Iterable[Place], known: Sequence[OffsetRange] = (), *, present: int = 0
) -> InputReport:
    """Look at the records of a grown input, from the fence on.

    Records without a key belong nowhere; Kafka Streams drops them before any state. An empty key belongs nowhere
    either if librdkafka may have spread it.

    :param known: misrouted records of this input that were accepted after this expansion.
    :param present: partitions that the input has now, if it may have grown further; a static partitioner puts new
        keys into them.
    """
    partitioner = partitioner_named(grown.partitioner, grown.declared)
    partitions = max(grown.target, present) if partitioner.is_static else grown.target
    records = accepted = chosen = 0
    first: list[Misrouted] = []
    spans: dict[int, tuple[int, int, int]] = {}
    remaining = iter(places)
    while batch := list(islice(remaining, _BATCH)):
        records += len(batch)
        with_key = [(place, place.key) for place in batch if place.key is not None]
        keyed = [(place, key) for place, key in with_key if not is_spread(partitioner, key)]
        homes = partitioner.partition_batch([key for _, key in keyed], partitions)
        for found, key in _elsewhere(keyed, homes):
            if any(each.covers(found.partition, found.offset) for each in known):
                accepted += 1
                continue
            begin, _, count = spans.get(found.partition, (found.offset, 0, 0))
            spans[found.partition] = begin, found.offset, count + 1
            (earlier,) = earlier_homes(partitioner, [key], grown.earlier or grown.current)
            chosen += found.partition != earlier
            if len(first) < SHOWN:
                first.append(found)
    return InputReport(
        topic=grown.topic,
        records=records,
        misrouted=sum(count for _, _, count in spans.values()),
        first=tuple(first),
        spans=tuple(Span(partition=p, first=a, last=b, records=n) for p, (a, b, n) in sorted(spans.items())),
        accepted=accepted,
        chosen=chosen,
    )


def refuse_misrouted(reports: Iterable[InputReport]) -> None:
    """Raise if any record was misrouted.

    :raises UnsafeState: a record was misrouted; the error names the topic and its first such records.
    """
    for report in reports:
        if report.misrouted:
            raise UnsafeState(
                f"input topic {report.topic!r}",
                found=f"{report.misrouted} of {report.records} records since the cutover {report.where}; "
                f"{'; '.join(map(str, report.first))}",
                expected="every key in the partition where its state is",
                remedy=remedy_of(report),
            )


def remedy_of(report: InputReport) -> str:
    """Return what a person does about the misrouted records of an input; the application goes on meanwhile."""
    advice = []
    if report.misrouted > report.chosen:
        advice.append(
            "A producer works with metadata from before the growth: restart it, and mend what these records did "
            "(they were processed without the state of their keys). For producers that can't be held, declare "
            "`policy: repartitioned`."
        )
    if report.chosen:
        advice.append(
            "A producer chooses partitions itself, and its metadata is no reason to restart it: see whether the "
            "application needs the state of these keys, which is in their own partitions."
        )
    options = " ".join(f"--finding {finding}" for finding in report.findings)
    accept = (
        f"What has been dealt with can be accepted: `python -m kafka_rescale accept FILE --reason TEXT {options}`."
    )
    return " ".join([*advice, accept])


def _elsewhere(keyed: list[tuple[Place, bytes]], homes: list[int]) -> Iterator[tuple[Misrouted, bytes]]:
    """Yield the records that are not in their home partition, each with its key."""
    for (place, key), home in zip(keyed, homes, strict=True):
        if place.partition != home:
            yield Misrouted(partition=place.partition, offset=place.offset, key=key.hex(), home=home), key
