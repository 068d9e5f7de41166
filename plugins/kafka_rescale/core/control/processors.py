"""The processors of each sub-topology and the partitions that they read, as the control topic keeps them.

This record stands beside ``Processing``: a client that is started anew forgets its threads, but never the
processors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import Field

from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.partitioning.linear_hashing import coarser
from kafka_rescale.core.partitioning.processors import NewProcessor, Processors, new_processors
from kafka_rescale.core.values import Value


class SourceTopic(Value):
    """A source topic as the latest run has found it.

    :param partitions: how many partitions the tasks know.
    :param grown_at_ms: wall clock when more partitions were first seen; 0 if it has never grown.
    :param settled: by partition, the end offset once every producer knew all partitions; empty until then.
    :param first: partitions when it was first read; 0 if an older version read it first and did not note them.
    :param since_ms: wall clock when it was first read.
    :param begun: partitions that have had a committed offset since then. If such an offset is gone, it is unknown
        where to go on.
    """

    partitions: int
    grown_at_ms: int = 0
    settled: dict[int, int] = Field(default_factory=dict)
    first: int = 0
    since_ms: int = 0
    begun: tuple[int, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether producers are known to use all partitions."""
        return not self.grown_at_ms or bool(self.settled)


class ProcessorCounts(Value):
    """The processors of a sub-topology; each is one task, and one partition of every changelog.

    :param initial: number at the very beginning; linear hashing always depends on it.
    :param count: number now.
    :param expanding_to: number that an expansion in progress aims at; 0 without an expansion.
    :param switched_in: the run that gave the latest processors their partitions.
    :param copied: number of changelog records that were copied to the latest processors.
    :param growing_to: number of partitions that changelogs may have ahead of the processors, because their growth
        has begun; 0 if no changelog is ahead.
    :param sources: the topics that it read in the last run, by the pipeline's own names; empty if an earlier
        version wrote the record.
    """

    initial: int
    count: int
    expanding_to: int = 0
    switched_in: str = ""
    copied: int = 0
    growing_to: int = Field(default=0, exclude_if=lambda count: not count)
    sources: tuple[str, ...] = Field(default=(), exclude_if=lambda topics: not topics)

    @property
    def largest(self) -> int:
        """The number of changelog partitions that are needed."""
        return max(self.count, self.expanding_to)

    def of(self, processor: int, partitions: int) -> list[int]:
        """Return the partitions of a topic that a processor consumes."""
        return [p for p in range(partitions) if coarser(p, self.count, self.initial) == processor]

    def parent(self, number: int) -> int:
        """Return the existing processor that a new one is split from."""
        return coarser(number, self.count, self.initial)

    def new(self, partitions: int) -> tuple[NewProcessor, ...]:
        """Return the processors that are being added, with what each will consume of a topic."""
        before = Processors(self.initial, self.count, partitions)
        return new_processors(before, before.with_count(self.largest))


class PipelineProcessors(Value):
    """The record of a pipeline's processors since its first start.

    :param sub_topologies: by their number.
    :param topics: every source topic, by the pipeline's own names.
    :param linear: inputs and outputs whose keys are placed by linear hashing, with their initial counts.
    :param static: inputs whose partitioner is static, with its function.
    :param changelogs: full names of the changelogs that exist since then.
    """

    sub_topologies: dict[int, ProcessorCounts] = Field(default_factory=dict)
    topics: dict[str, SourceTopic] = Field(default_factory=dict)
    linear: dict[str, int] = Field(default_factory=dict)
    static: dict[str, str] = Field(default_factory=dict)
    changelogs: tuple[str, ...] = ()

    @property
    def tasks(self) -> dict[int, int]:
        """The number of tasks by sub-topology."""
        return {number: counts.count for number, counts in self.sub_topologies.items()}

    @property
    def expanding(self) -> tuple[int, ...]:
        """The sub-topologies that are getting more processors."""
        return tuple(number for number, counts in self.sub_topologies.items() if counts.expanding_to)

    @property
    def split(self) -> frozenset[TaskId]:
        """The tasks that new processors are being split from."""
        return frozenset(
            TaskId(number, counts.parent(new))
            for number, counts in self.sub_topologies.items()
            for new in range(counts.count, counts.largest)
        )

    def with_counts(self, number: int, **changes: object) -> PipelineProcessors:
        """Return the record with a sub-topology changed."""
        changed = self.sub_topologies[number].model_copy(update=changes)
        return self.model_copy(update={"sub_topologies": {**self.sub_topologies, number: changed}})

    def growing(self, targets: Mapping[int, int]) -> PipelineProcessors:
        """Return the record while changelogs are grown. No changelog can shrink, so no such number falls.

        :param targets: by sub-topology, the number of partitions that its changelogs get.
        """
        found = self
        for number, target in targets.items():
            found = found.with_counts(number, growing_to=max(target, self.sub_topologies[number].growing_to))
        return found

    def asked_for(self, number: int, target: int) -> PipelineProcessors:
        """Return the record after processors of a sub-topology were asked for. Changelogs have grown by now."""
        ahead = self.sub_topologies[number].growing_to
        return self.with_counts(number, expanding_to=target, growing_to=ahead if ahead > target else 0)

    def with_settled(self, topic: str, ends: dict[int, int]) -> PipelineProcessors:
        """Return the record with a topic that all its producers know."""
        return self._with_topic(topic, settled=ends)

    def with_begun(self, topic: str, partitions: Iterable[int]) -> PipelineProcessors:
        """Return the record with a note that these partitions of a topic have had an offset."""
        return self._with_topic(topic, begun=tuple(partitions))

    def forgotten(self, at_ms: int) -> PipelineProcessors:
        """Return the record as if no record had ever been processed, with the present partitions and processors.

        :param at_ms: wall clock.
        """
        topics = {t: k.model_copy(update={"begun": (), "since_ms": at_ms}) for t, k in self.topics.items()}
        return self.model_copy(update={"topics": topics})

    def _with_topic(self, topic: str, **changes: object) -> PipelineProcessors:
        changed = self.topics[topic].model_copy(update=changes)
        return self.model_copy(update={"topics": {**self.topics, topic: changed}})
