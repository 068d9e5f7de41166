"""Partitions change hands from existing processors to new ones (KIP-287), and no old run can undo it.

1. Fence the existing processor: its changelogs end at T1, and its inputs go on at its committed offsets.
2. Fence each new processor. It has restored up to T2: copy the entries between T2 and T1.
3. Commit the offsets of S1, the partitions that the new processors will consume, with the new number of processors
   as their mark. Commit them **by the existing processor's transactional id**. If an old run has taken this id
   since step 1, the commit fails. If an old run takes the id later, it finds the mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import TopicPartition as KafkaPartition

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.partitioning.processors import NewProcessor
from kafka_rescale.core.processing.state_copies import NewTask, Restored, is_almost_caught_up
from kafka_rescale.core.processing.task_state import TaskMark
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.processing.state_copy import StateCopy, positions
from kafka_rescale.kafka.processing.task_producer import TaskProducer
from kafka_rescale.kafka.reading.committed import AT_ONCE, closing_consumer, read_committed
from kafka_rescale.kafka.reading.log_range import log_range


@dataclass(frozen=True)
class Sources:
    """The sources of a sub-topology.

    :param partitions: by full names of topics.
    :param settled: for each topic that has grown, by full name: the offset of each partition up to which records
        have to be processed before the hand-over. None instead of the offsets if it is not known yet that all
        producers use all partitions.
    """

    partitions: Mapping[str, int]
    settled: Mapping[str, Mapping[int, int] | None]

    def of(self, task: NewTask) -> list[TopicPartition]:
        """Return S1: the partitions that a new processor will consume."""
        return [(topic, p) for topic, new in self._new(task) for p in new.consumes]

    def read_before(self, task: NewTask) -> list[TopicPartition]:
        """Return S2: the partitions that keys of S1 may have been in."""
        return [(topic, p) for topic, new in self._new(task) for p in new.reads]

    def _new(self, task: NewTask) -> Iterator[tuple[str, NewProcessor]]:
        for topic, count in self.partitions.items():
            yield from ((topic, new) for new in task.counts.new(count) if new.number == task.task.partition)


class HandOver:
    """The hand-over of a sub-topology's partitions to its new processors.

    :param tasks: the new tasks.
    """

    def __init__(self, connection: KafkaConnection, tasks: Sequence[NewTask], sources: Sources) -> None:
        self._connection, self._tasks, self._sources = connection, tasks, sources
        self._application_id = tasks[0].application_id

    def is_done(self, task: NewTask) -> bool:
        """Whether a new processor has its partitions. This may still be False if it has only just got them.

        One of its partitions tells that, because all were committed in one transaction. Partitions by which an
        input has grown since have no offset yet.
        """
        with closing_consumer(self._connection, self._application_id, **AT_ONCE) as consumer:
            known = read_committed(consumer, self._sources.of(task))
        return any(TaskMark.of(text).processors >= task.counts.largest for _, text in known.values())

    def waits_for(self, acceptable_lag: int) -> str:
        """Return why partitions can't change hands yet.

        The text is empty if they can, or if some partitions have changed hands already.
        """
        if any(self.is_done(task) for task in self._tasks):
            return ""
        return next((reason for task in self._tasks for reason in self._reasons(task, acceptable_lag)), "")

    def perform(self) -> None:
        """Let the partitions change hands. This does not repeat what an earlier call has done.

        :raises Fenced: another process does the same, or an old run has begun meanwhile. Run again.
        :raises Outage: the brokers don't answer.
        """
        left = [task for task in self._tasks if not self.is_done(task)]
        for parent in sorted({task.parent for task in left}):
            split = [task for task in left if task.parent == parent]
            producer = TaskProducer(self._connection, split[0].transactional_id(parent))
            try:
                for task in split:
                    self._finish(task)
                self._commit(producer, split)
            finally:
                producer.abort()

    def copied(self) -> int:
        """Return how many records were copied for the new processors."""
        return sum(found.mark.copied for task in self._tasks for found in _positions(self._connection, task))

    def _finish(self, task: NewTask) -> None:
        copy = StateCopy(self._connection, task)
        try:
            copy.to_the_end(is_final=True, seconds=0)
        finally:
            copy.close()

    def _commit(self, producer: TaskProducer, tasks: Sequence[NewTask]) -> None:
        with closing_consumer(self._connection, self._application_id) as consumer:
            parent = tasks[0].parent
            kept = [(t, p) for t, n in self._sources.partitions.items() for p in tasks[0].counts.of(parent[1], n)]
            known = read_committed(consumer, kept)
            mark = _latest(text for _, text in known.values())
            mark = mark.model_copy(update={"at_ms": now_ms(), "processors": tasks[0].counts.largest})
            offsets = [
                KafkaPartition(
                    *source,
                    known[source][0] if source in known else log_range(consumer, source).begin,
                    metadata=mark.model_dump_json(),
                )
                for task in tasks
                for source in self._sources.of(task)
            ]
            producer.commit(offsets, consumer)

    def _reasons(self, task: NewTask, acceptable_lag: int) -> Iterator[str]:
        with closing_consumer(self._connection, self._application_id, **AT_ONCE) as consumer:
            read = self._sources.read_before(task)
            known = read_committed(consumer, read)
        yield from self._unsettled(read, known)
        marks = [TaskMark.of(text).processors or task.counts.initial for _, text in known.values()]
        if any(mark < task.counts.count for mark in marks):
            yield f"task {task.parent} has not let go of what moved in the last expansion"
        restored = _positions(self._connection, task, **AT_ONCE)
        if any(found.mark.is_final for found in restored):
            return  # The hand-over has begun. The rest has to be read, however much it is.
        for found in restored:
            if found.objection:
                yield f"task {task.task} has to be warmed up again: {found.objection}"
        if not is_almost_caught_up(restored, acceptable_lag):
            yield f"task {task.task} has {sum(found.lag for found in restored):,} offsets to restore"

    def _unsettled(
        self, read: Sequence[TopicPartition], known: Mapping[TopicPartition, tuple[int, str | None]]
    ) -> Iterator[str]:
        for topic, partition in read:
            settled = self._sources.settled.get(topic, {})
            if settled is None:
                yield f"producers of {topic} may not know all its partitions yet"
            elif known.get((topic, partition), (0, None))[0] < settled.get(partition, 0):
                end = settled[partition]
                yield (
                    f"{topic}-{partition} is not processed up to {end} yet; only from there on did all producers "
                    "know all partitions"
                )


def _positions(connection: KafkaConnection, task: NewTask, **tuning: object) -> list[Restored]:
    with closing_consumer(connection, task.group, **tuning) as consumer:
        return list(positions(consumer, task, now_ms()).values())


def _latest(metadata: Iterable[str | None]) -> TaskMark:
    return max(map(TaskMark.of, metadata), key=lambda mark: mark.at_ms, default=TaskMark())
