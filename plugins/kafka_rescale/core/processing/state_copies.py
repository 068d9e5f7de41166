"""The copy of entries from the changelog of an existing processor to the changelog of a new one (KIP-287).

T1 is the end of the existing processor's changelog once no task writes to it any more. T2 is the offset up to
which the new processor has restored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.cluster import TopicDescription, TopicPartition
from kafka_rescale.core.control.processors import ProcessorCounts
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.partitioning.linear_hashing import ancestors
from kafka_rescale.core.pipeline.task import StoreDefinition
from kafka_rescale.core.processing.static_topic import Placement
from kafka_rescale.core.values import Value


class CopyMark(Value):
    """The metadata that is committed with T2, the offset up to which a new processor has restored.

    :param topic_id: the id of the changelog. A changelog that was deleted and made anew has other offsets.
    :param as_of_ms: a wall clock in ms. All records that the changelog had at this time have been read. If the
        reading has never reached an end, this is the time when it began. T2 can be used as long as the changelog
        still has all deletions since this time.
    :param copied: the number of records that were written to the new processor's changelog so far.
    :param is_final: whether the partitions are changing hands. From then on, the reading ends at T1.
    """

    topic_id: str = ""
    as_of_ms: int = 0
    copied: int = 0
    is_final: bool = False

    @classmethod
    def of(cls, metadata: str | None) -> CopyMark:
        """Return the mark of a committed offset. If the metadata is no mark, return the mark of the beginning."""
        try:
            return cls.model_validate_json(metadata or "")
        except ValidationError:
            return cls()

    def of_changelog(self, topic_id: str) -> CopyMark:
        """Return the mark as it counts for a changelog. A hand-over of an earlier life, with another, is over."""
        return self if self.topic_id == topic_id else self.model_copy(update={"is_final": False})

    def going_on(self, topic_id: str, asked_ms: int, *, is_final: bool) -> CopyMark:
        """Return the mark of a pass that has not reached an end. Such a pass does not make the state younger.

        :param asked_ms: the wall clock before the pass asked for the end.
        """
        as_of_ms = self.as_of_ms or asked_ms
        return self.model_copy(update={"topic_id": topic_id, "is_final": is_final, "as_of_ms": as_of_ms})

    def at_the_end(self, asked_ms: int) -> CopyMark:
        """Return the mark of a pass that has read up to the end that it asked for."""
        return self.model_copy(update={"as_of_ms": max(asked_ms, self.as_of_ms)})


POSITION_GONE = "copied records are there, but not the offset of the copy (the group of the warm-up is gone)"
"""Deletions may have been compacted away since the copy. If it went on from the log start, it would miss these
deletions, and the new processor would keep the deleted entries."""


@dataclass(frozen=True)
class Restored:
    """How far a new processor has restored one changelog of its parent.

    :param source: the partition of the parent's changelog.
    :param to: T2. The log start if nothing was read.
    :param end: the end of the changelog (exclusive). It is T1 once no task writes to the changelog any more.
    :param objection: the reason why T2 can't be used and everything has to be read again. Empty if T2 can be used.
    """

    source: TopicPartition
    to: int
    end: int
    mark: CopyMark
    objection: str = ""

    @property
    def lag(self) -> int:
        """The number of offsets between T2 and the end."""
        return self.end - self.to


def is_almost_caught_up(restored: Iterable[Restored], acceptable_lag: int) -> bool:
    """Return whether partitions can be handed over, because few offsets are left to restore in the pause.

    :param restored: the progress in each changelog.
    :param acceptable_lag: the most offsets that may be left, in all changelogs together.
    """
    return sum(found.lag for found in restored) <= acceptable_lag


@dataclass(frozen=True)
class NewTask:
    """A processor that is being added, and where its state comes from.

    :param counts: the processors of its sub-topology, with ``expanding_to``.
    :param placement: the rule that gives the processor of a key.
    :param stores: the stores that have a changelog.
    :param topics: the descriptions of the changelogs, by full names.
    """

    application_id: str
    task: TaskId
    counts: ProcessorCounts
    placement: Placement
    stores: tuple[StoreDefinition, ...]
    topics: Mapping[str, TopicDescription]

    @property
    def parent(self) -> TaskId:
        """The existing task that the new task is split from. All keys of the new task are there so far."""
        return TaskId(self.task.subtopology, self.counts.parent(self.task.partition))

    @property
    def group(self) -> str:
        """The consumer group in which T2 is committed."""
        return f"{self.application_id}-warm-up-{self.task}"

    def transactional_id(self, task: TaskId) -> str:
        """Return the transactional id of a task. A newer writer with this id fences older writers."""
        return f"{self.application_id}-{task}"

    def changelog(self, store: StoreDefinition) -> str:
        """Return the full name of a store's changelog."""
        return f"{self.application_id}-{store.changelog_topic}"

    def wanted(self, store: StoreDefinition, keys: Sequence[bytes]) -> list[bool]:
        """Return for each entry of the parent's changelog whether it belongs to the new processor.

        :raises UnsafeState: an entry lies in another partition than the rule gives for its key.
        """
        counts = self.counts
        before = owners(store, keys, self.placement, counts.count)
        parent = self.parent.partition
        for key, owner in zip(keys, before, strict=True):
            if owner != parent and parent not in ancestors(owner, counts.initial):
                raise UnsafeState(
                    f"changelog {self.changelog(store)} partition {parent}: key 0x{key.hex()}",
                    found=f"the state of processor {owner}, by {self.placement.rule}",
                    expected=f"only that of processor {parent}",
                    remedy="The inputs are not placed by that rule over the keys of the store: they have another "
                    "partitioner, or a serde that writes keys differently. Their processors can't be expanded.",
                )
        after = owners(store, keys, self.placement, counts.largest)
        return [owner == self.task.partition for owner in after]


def owners(store: StoreDefinition, keys: Sequence[bytes], placement: Placement, processors: int) -> list[int]:
    """Return the processor that each entry of a store belongs to.

    :param processors: the number of processors.
    :raises UnsafeState: a key can't be a key of this store.
    """
    return placement.owners(store.format.partitioning_keys(keys), processors)


def new_tasks(
    application_id: str,
    number: int,
    counts: ProcessorCounts,
    placement: Placement,
    stores: Sequence[StoreDefinition],
    topics: Mapping[str, TopicDescription],
) -> list[NewTask]:
    """Return the tasks that an expansion of a sub-topology adds."""
    logged = tuple(store for store in stores if store.is_logged)
    added = range(counts.count, counts.largest)
    return [NewTask(application_id, TaskId(number, n), counts, placement, logged, topics) for n in added]
