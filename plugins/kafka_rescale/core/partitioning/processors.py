"""The processor that consumes a partition (KIP-287).

More partitions or more processors move no state between existing processors. A processor is a consumer with its
local state. Its partitions follow by linear hashing from the number of processors with which the job began. This
number must never be forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from kafka_rescale.core.errors import Refused
from kafka_rescale.core.partitioning.linear_hashing import ancestors, coarser


@dataclass(frozen=True)
class Processors:
    """The partitions of a job's input, and the processors that consume them.

    :param initial: the number of partitions, and of processors, at the very beginning.
    :param count: the number of processors now. They are numbered from 0. There are never fewer than at the
        beginning.
    :param partitions: the number of partitions now. There are never fewer partitions than processors.
    :raises Refused: there are fewer processors than at the beginning, or fewer partitions than processors.
    """

    initial: int
    count: int
    partitions: int

    def __post_init__(self) -> None:
        if not 1 <= self.initial <= self.count:
            raise Refused(
                "processors",
                found=f"{self.count}",
                expected=f"at least the initial {self.initial}, which is 1 or more",
                remedy="Linear hashing can't merge state. Keep the processors that the job began with.",
            )
        if self.partitions < self.count:
            raise Refused(
                "processors",
                found=f"{self.count} for {self.partitions} partitions",
                expected="at most one processor per partition",
                remedy="Expand the partitions of the input topic first, then the processors.",
            )

    @classmethod
    def begin(cls, partitions: int) -> Self:
        """Return a new job's processors: one per partition."""
        return cls(partitions, partitions, partitions)

    def with_partitions(self, partitions: int) -> Self:
        """Return the same processors with the partitions that the input topic has after it has grown.

        :raises Refused: the input topic would shrink.
        """
        if partitions < self.partitions:
            raise Refused(
                "partitions of the input topic",
                found=f"{partitions}",
                expected=f"at least the present {self.partitions}",
                remedy="A topic can't shrink: leave it as it is.",
            )
        return replace(self, partitions=partitions)

    def with_count(self, count: int) -> Self:
        """Return more processors for the same partitions.

        :raises Refused: the count is less than now, or more than the number of partitions.
        """
        if count < self.count:
            raise Refused(
                "processors",
                found=f"{count}",
                expected=f"at least the present {self.count}",
                remedy="With fewer processors, state would have to move between them. Keep those that there are.",
            )
        return replace(self, count=count)

    def processor(self, partition: int) -> int:
        """Return the processor that consumes a partition."""
        return coarser(partition, self.count, self.initial)

    def of(self, processor: int) -> tuple[int, ...]:
        """Return the partitions that a processor consumes."""
        return tuple(p for p in range(self.partitions) if self.processor(p) == processor)


@dataclass(frozen=True)
class NewProcessor:
    """A new processor that builds its state while other processors still do its work.

    :param consumes: S1, the partitions that it will consume.
    :param reads: S2, the partitions that may have records with the keys of S1: the partitions of S1 themselves,
        and the partitions from which they were split.
    """

    number: int
    consumes: tuple[int, ...]
    reads: tuple[int, ...]


def new_processors(before: Processors, after: Processors) -> tuple[NewProcessor, ...]:
    """Return the processors that an expansion adds, and the partitions that each has to read.

    :param before: the processors before the expansion. They have the same partitions as ``after``, because the
        partitions have to grow first.
    :raises Refused: the partitions are not the same, or the two belong to different jobs.
    """
    if (before.initial, before.partitions) != (after.initial, after.partitions):
        raise Refused(
            "expansion of processors",
            found=f"{before} and {after}",
            expected="one job with as many partitions before as after",
            remedy="Expand the partitions first, and let every processor see the new partitions.",
        )
    return tuple(_new(after, number) for number in range(before.count, after.count))


def _new(processors: Processors, number: int) -> NewProcessor:
    consumes = processors.of(number)
    reads = {*consumes, *(a for p in consumes for a in ancestors(p, processors.initial))}
    return NewProcessor(number, consumes, tuple(sorted(reads)))
