"""Copying entries from the changelog of an existing processor to that of a new processor (KIP-287)."""

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
    """What is committed beside T2, the offset up to which a new processor has restored.

    :param topic_id: of the changelog; if it was made anew, its offsets are others.
    :param as_of_ms: wall clock as of which the whole changelog has been read; if the reading has never reached an
        end, when it began. Deletions are remembered from then on.
    :param copied: records that were written to the new processor's changelog so far.
    :param is_final: whether the partitions change hands: from now on the reading ends at T1.
    """

    topic_id: str = ""
    as_of_ms: int = 0
    copied: int = 0
    is_final: bool = False

    @classmethod
    def of(cls, metadata: str | None) -> CopyMark:
        """Return the mark of a committed offset; a mark of the beginning if the metadata is no mark."""
        try:
            return cls.model_validate_json(metadata or "")
        except ValidationError:
            return cls()

    def going_on(self, topic_id: str, asked_ms: int, *, is_final: bool) -> CopyMark:
        """Return the mark of a pass that has not reached an end, which makes the state no younger.

        :param asked_ms: wall clock before the end was asked for.
        """
        as_of_ms = self.as_of_ms or asked_ms
        return self.model_copy(update={"topic_id": topic_id, "is_final": is_final, "as_of_ms": as_of_ms})

    def at_the_end(self, asked_ms: int) -> CopyMark:
        """Return the mark of a pass that has read up to the end that was asked for."""
        return self.model_copy(update={"as_of_ms": max(asked_ms, self.as_of_ms)})


POSITION_GONE = "what was copied before is there, and not up to where (the group of the warm-up is gone)"
"""Deletions since may have been compacted away: a restart from the log start would keep deleted entries."""


@dataclass(frozen=True)
class Restored:
    """How far a new processor has restored one changelog of its parent.

    :param to: T2; the log start if nothing was read.
    :param end: of the changelog (exclusive); T1 once no task writes to it any more.
    :param objection: why T2 is of no use, and everything has to be read again; else empty.
    """

    source: TopicPartition
    to: int
    end: int
    mark: CopyMark
    objection: str = ""

    @property
    def lag(self) -> int:
        """Offsets between T2 and T1."""
        return self.end - self.to


def is_almost_caught_up(restored: Iterable[Restored], acceptable_lag: int) -> bool:
    """Return whether to hand partitions over, because few offsets are left to restore in the pause.

    :param restored: by changelog.
    :param acceptable_lag: the most offsets that may be left, of all changelogs together.
    """
    return sum(found.lag for found in restored) <= acceptable_lag


@dataclass(frozen=True)
class NewTask:
    """A processor that is being added, and where its state comes from.

    :param counts: of its sub-topology, with ``expanding_to``.
    :param placement: tells which processor has a key.
    :param stores: the stores that have a changelog.
    :param topics: descriptions of the changelogs, by full names.
    """

    application_id: str
    task: TaskId
    counts: ProcessorCounts
    placement: Placement
    stores: tuple[StoreDefinition, ...]
    topics: Mapping[str, TopicDescription]

    @property
    def parent(self) -> TaskId:
        """The existing task that it is split from; no other task has had its keys."""
        return TaskId(self.task.subtopology, self.counts.parent(self.task.partition))

    @property
    def group(self) -> str:
        """The consumer group in which T2 is committed."""
        return f"{self.application_id}-warm-up-{self.task}"

    def transactional_id(self, task: TaskId) -> str:
        """Return the transactional id of a task: a newer writer with this id fences older ones."""
        return f"{self.application_id}-{task}"

    def changelog(self, store: StoreDefinition) -> str:
        """Return the full name of a store's changelog."""
        return f"{self.application_id}-{store.changelog_topic}"

    def wanted(self, store: StoreDefinition, keys: Sequence[bytes]) -> list[bool]:
        """Return which entries of the parent's changelog belong to the new processor.

        :raises UnsafeState: an entry lies in another partition than its key says.
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
                    remedy="The inputs are not placed by that rule over the key that the store has (another "
                    "partitioner, or a serde that writes keys differently): their processors can't be expanded.",
                )
        after = owners(store, keys, self.placement, counts.largest)
        return [owner == self.task.partition for owner in after]


def owners(store: StoreDefinition, keys: Sequence[bytes], placement: Placement, processors: int) -> list[int]:
    """Return the processor that each entry of a store belongs to.

    :param processors: how many there are.
    :raises UnsafeState: a key can't be of this store.
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
