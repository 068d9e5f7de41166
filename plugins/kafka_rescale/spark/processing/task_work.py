"""The work of one run of one task, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.cluster import TopicDescription, TopicPartition
from kafka_rescale.core.control.job_failure import JobFailure
from kafka_rescale.core.pipeline.task import StoreDefinition
from kafka_rescale.core.processing.backfill import Backfill
from kafka_rescale.core.processing.grown_topic import GrownTopic
from kafka_rescale.core.processing.static_topic import Placement, StaticTopic

RENEW_MS = 24 * 3600 * 1000
"""Offsets of a group without members expire, by the brokers' default a week after their commit."""


def transactional_id(application_id: str, task: object) -> str:
    """Return the transactional id of a task: the latest producer with this id may write for the task."""
    return f"{application_id}-{task}"


@dataclass(frozen=True)
class TaskLimits:
    """How large transactions are.

    :param batch_records: how many records the processor gets at a time; fewer if they take more than ``seconds``.
    :param records: after how many records of the inputs a transaction is committed, at the latest.
    :param seconds: after what time it is committed, at the latest; the brokers abort a transaction of 60 s.
    :param renew_ms: offsets are committed again after this time without any record, so that they don't expire.
    :param sign_seconds: while a task restores its state, it commits its offsets again after this time.
    """

    batch_records: int = 1_000
    records: int = 20_000
    seconds: float = 5.0
    renew_ms: int = RENEW_MS
    sign_seconds: float = 20.0


@dataclass(frozen=True)
class TaskWork:
    """The work of one run of one task.

    :param application_id: id of the generation; its group, transactional ids and internal topics bear it.
    :param names: full names of the topics that the sub-topology reads and writes, by the pipeline's own names.
    :param ends: captured ends (exclusive) of the source partitions, by full names.
    :param topics: descriptions of sinks and changelogs, by full names.
    :param state_dir: where state is kept between runs.
    :param initial: number of processors that the sub-topology began with; 0 if that is not known.
    :param processors: how many processors it has now.
    :param grown: source topics that have grown and whose keys are placed by linear hashing, by full names.
    :param static_owner: an input whose static partitioner assigns keys to processors; None for linear hashing.
    :param static: inputs that have grown and whose partitioner is static, by full names.
    :param linear: initial counts of the sinks that are written by linear hashing, by full names.
    :param begins: offsets at which a task without committed offsets begins; other sources begin at their log
        start.
    :param backfill: the interval whose records are processed; None processes all records.
    :param cache_bytes: size of the record cache; 0 for no cache.
    """

    application_id: str
    task: TaskId
    names: Mapping[str, str]
    ends: Mapping[TopicPartition, int]
    topics: Mapping[str, TopicDescription]
    state_dir: str
    limits: TaskLimits = field(default_factory=TaskLimits)
    initial: int = 0
    processors: int = 0
    grown: Mapping[str, GrownTopic] = field(default_factory=dict)
    static_owner: StaticTopic | None = None
    static: Mapping[str, StaticTopic] = field(default_factory=dict)
    linear: Mapping[str, int] = field(default_factory=dict)
    begins: Mapping[TopicPartition, int] = field(default_factory=dict)
    backfill: Backfill | None = None
    cache_bytes: int = 0

    @property
    def transactional_id(self) -> str:
        """The latest producer with this id may write for the task."""
        return transactional_id(self.application_id, self.task)

    @property
    def placement(self) -> Placement:
        """Which processor has the state of a key."""
        return Placement(self.initial, self.static_owner)

    @property
    def own_names(self) -> dict[str, str]:
        """The pipeline's own names of topics, by full names."""
        return {full: name for name, full in self.names.items()}

    def changelog(self, store: StoreDefinition) -> str:
        """Return the full name of a logged store's changelog."""
        return f"{self.application_id}-{store.changelog_topic}"


@dataclass(frozen=True)
class TaskDone:
    """The result of one run of one task.

    :param records: number of records processed.
    :param emitted: number of records written to sinks.
    :param restored: number of records read from changelogs.
    :param full_restores: number of stores for which no saved state could be used.
    :param positions: next offsets to read, by full names of topics.
    :param dropped: number of records that the pipeline has skipped since the task last began anew.
    :param stream_time_ms: highest timestamp processed so far; -1 if there is none.
    :param let_go: number of keys that belong to a new processor by now, and were deleted here.
    :param mark: the mark that is committed beside the offsets, as JSON.
    """

    task: TaskId
    records: int
    emitted: int
    transactions: int
    restored: int
    full_restores: int
    positions: Mapping[TopicPartition, int]
    dropped: int
    stream_time_ms: int
    seconds: float
    let_go: int = 0
    mark: str = field(default="", repr=False)


@dataclass(frozen=True)
class TaskStopped:
    """The result of one run of one task that was stopped by what it has read, such as a record.

    :param failure: the error that has stopped it.
    :param trace: where in the code it was raised.
    """

    task: TaskId
    failure: JobFailure
    trace: str = field(repr=False)
