"""How a run of a task begins: the committed offsets, and its changelogs as they are now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import Fenced
from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.core.processing.task_start import task_start
from kafka_rescale.core.processing.task_state import Changelog, TaskMark
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.processing.changelogs import whole_changelogs
from kafka_rescale.kafka.reading.committed import read_committed
from kafka_rescale.kafka.reading.log_range import log_range
from kafka_rescale.spark.processing.task_work import TaskWork


@dataclass(frozen=True)
class Beginning:
    """How a run begins.

    :param positions: next offsets to read.
    :param mark: the newest mark that was committed beside the offsets.
    :param is_committed: whether every source has an offset.
    :param changelogs: changelogs of the logged stores, by the stores' names.
    """

    positions: Mapping[TopicPartition, int]
    mark: TaskMark
    is_committed: bool
    changelogs: Mapping[str, Changelog]


def beginning(
    connection: KafkaConnection, work: TaskWork, subtopology: SubTopology, consumer: Consumer
) -> Beginning:
    """Return how a task begins. Every older attempt has to be fenced before.

    :param consumer: consumer of the application's group.
    :raises Fenced: processors have been added since the run was asked for.
    :raises UnsafeState: offsets and topics contradict each other.
    """
    committed = read_committed(consumer, work.ends)
    marks = [TaskMark.of(text) for _, text in committed.values()]
    _refuse_older_than_committed(work, marks)
    changelogs = _changelogs(connection, work, subtopology)
    ranges = {source: log_range(consumer, source) for source in work.ends}
    positions = task_start(
        str(work.task),
        {source: offset for source, (offset, _) in committed.items()},
        ranges,
        # The ends count, not the contents: retention may have deleted a window store's whole changelog although
        # its task has worked.
        has_state=any(changelog.end > 0 for changelog in changelogs.values()),
        begins=work.begins,
    )
    mark = max(marks, key=lambda m: m.at_ms, default=TaskMark())
    return Beginning(positions, mark, len(committed) == len(work.ends), changelogs)


def _refuse_older_than_committed(work: TaskWork, marks: Iterable[TaskMark]) -> None:
    """Stop a run that was asked for before processors were added: other tasks have its partitions by now."""
    known = max((mark.processors for mark in marks), default=0)
    if known > max(work.processors, work.initial):
        raise Fenced(
            f"task {work.transactional_id}",
            found=f"offsets that were committed with {known} processors",
            expected=f"at most the {work.processors} processors of this run",
            remedy="Nothing to do here: processors were added since, and a newer run goes on.",
        )


def _changelogs(connection: KafkaConnection, work: TaskWork, subtopology: SubTopology) -> dict[str, Changelog]:
    """Return the changelog partition of each logged store; no other process writes to it any more."""
    names = {store.name: work.changelog(store) for store in subtopology.stores if store.is_logged}
    whole = whole_changelogs(connection, work.application_id, work.topics, work.task.partition, names.values())
    return {store: whole[name] for store, name in names.items()}
