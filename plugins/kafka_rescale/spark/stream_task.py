"""One run of one task: from its committed offsets to captured ends, in transactions each complete in itself.

1. Fence: ``init_transactions`` of the task's own transactional id ends whatever an older attempt had begun.
2. Positions: the committed offsets of the application's group, and the checkpoint beside them.
3. State: the newest saved state, and the rest of the changelog; or all of the changelog.
4. Batches: outputs and changelog records as they come, offsets and checkpoint with them, in one transaction.
5. Files: only what is committed is saved, so that no file is ever ahead of the changelog.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import islice

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.pipeline.task import StoreView, SubTopology, TaskProcessor
from kafka_rescale.core.processing.expiry import Expiry
from kafka_rescale.core.processing.task_state import TaskMark
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.copy_marks import copy_consumer
from kafka_rescale.kafka.copy_producer import Rewound
from kafka_rescale.kafka.task_input import TaskInput
from kafka_rescale.kafka.task_producer import TaskProducer
from kafka_rescale.kafka.waiting import now_ms
from kafka_rescale.spark.logged_store import LoggedStore, Restored
from kafka_rescale.spark.state_files import StateFiles
from kafka_rescale.spark.state_store import TaskStore
from kafka_rescale.spark.task_beginning import beginning
from kafka_rescale.spark.task_records import processed, records_of, write
from kafka_rescale.spark.task_work import TaskDone, TaskWork

REWINDS = 5
"""So often may the brokers abort a run's transactions before that is a failure."""


def run_task(
    connection: KafkaConnection, work: TaskWork, subtopology: SubTopology, clock: Callable[[], int] = now_ms
) -> TaskDone:
    """Process what a task has to read, and return what that was.

    :raises Fenced: a newer attempt at the task has begun; nothing was written since.
    :raises UnsafeState: offsets and topics contradict each other.
    :raises InvalidInput: a record that the pipeline can't read.
    """
    began, rewinds = time.monotonic(), 0
    logged = [work.changelog(store) for store in subtopology.stores if store.is_logged]
    producer = TaskProducer(connection, work.transactional_id, logged)
    while True:
        consumer = copy_consumer(connection, work.application_id, **{"fetch.wait.max.ms": 20})
        try:
            task = StreamTask(connection, work, subtopology, producer, consumer, clock)
            task.process()
            return task.done(time.monotonic() - began)
        except Rewound as rewound:
            rewinds += 1
            if rewinds > REWINDS or not isinstance(rewound.reason, Outage):
                raise rewound.reason from None
            producer.forget()
        finally:
            producer.abort()
            consumer.close()


class StreamTask:
    """One go from the committed offsets on; what it has in memory is worth nothing once a transaction was aborted.

    :param producer: has fenced every older attempt.
    :param consumer: of the application's group.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        work: TaskWork,
        subtopology: SubTopology,
        producer: TaskProducer,
        consumer: Consumer,
        clock: Callable[[], int],
    ) -> None:
        self._connection, self._work, self._subtopology = connection, work, subtopology
        self._producer, self._consumer, self._clock = producer, consumer, clock
        self._begun = beginning(connection, work, subtopology, consumer)
        self._positions: Mapping[TopicPartition, int] = self._begun.positions
        self._stores = {
            store.name: LoggedStore(
                connection,
                self._begun.changelogs[store.name],
                self._files(store.name),
                producer,
                clock,
                Expiry.of(store),
            )
            for store in subtopology.stores
            if store.is_logged
        }
        self._restored: list[Restored] = []
        self._records = self._emitted = self._transactions = self._dropped = 0
        self._stream_time = -1

    def process(self) -> None:
        """Process everything up to the ends, commit, and save the state."""
        has_input = any(self._begun.positions[source] < end for source, end in self._work.ends.items())
        if self._is_renewal_due():
            # Before anything is written: a changelog that holds anything, if only of a killed attempt, is state.
            self._commit(self._begun.positions, self._begun.mark.checkpoint)
        if has_input:
            self._process_all(self._processor())
            for store in self._stores.values():
                store.save()

    def done(self, seconds: float) -> TaskDone:
        """Return what was done."""
        return TaskDone(
            task=self._work.task,
            records=self._records,
            emitted=self._emitted,
            transactions=self._transactions,
            restored=sum(each.records for each in self._restored),
            full_restores=sum(each.is_full for each in self._restored),
            positions=self._positions,
            dropped=self._dropped,
            stream_time_ms=self._stream_time,
            seconds=round(seconds, 3),
        )

    def _processor(self) -> TaskProcessor:
        self._restored = [store.restore() for store in self._stores.values()]
        views: dict[str, StoreView] = {name: store.store for name, store in self._stores.items()}
        views |= {s.name: TaskStore(_unlogged) for s in self._subtopology.stores if not s.is_logged}
        processor = self._subtopology.processor(views, self._work.task.partition)
        processor.restore(self._begun.mark.checkpoint)
        return processor

    def _process_all(self, processor: TaskProcessor) -> None:
        limits, pending, began = self._work.limits, 0, time.monotonic()
        source = TaskInput(self._consumer, self._begun.positions, self._work.ends)
        records = records_of(source.records(), self._work)
        while batch := list(islice(records, limits.batch_records)):
            with self._producer.transaction():
                emitted = processed(processor, batch, self._work.backfill)
                write(self._producer, emitted, self._work)
            self._emitted += len(emitted)
            pending += len(batch)
            self._records += len(batch)
            if pending >= limits.records or time.monotonic() - began >= limits.seconds:
                self._commit(source.positions(), processor.checkpoint())
                pending, began = 0, time.monotonic()
        if pending or source.positions() != self._positions:
            self._commit(source.positions(), processor.checkpoint())
        self._dropped, self._stream_time = processor.dropped_records(), processor.stream_time()

    def _commit(self, positions: Mapping[TopicPartition, int], checkpoint: str) -> None:
        at_ms = self._clock()
        metadata = TaskMark(at_ms=at_ms, checkpoint=checkpoint).model_dump_json()
        offsets = [KafkaPartition(*source, at, metadata=metadata) for source, at in positions.items()]
        self._producer.commit(offsets, self._consumer)
        self._positions = positions
        self._transactions += 1
        for store in self._stores.values():
            store.committed(at_ms)

    def _files(self, store: str) -> StateFiles:
        return StateFiles(self._work.state_dir, f"{self._work.application_id}/{self._work.task}/{store}")

    def _is_renewal_due(self) -> bool:
        age_ms = self._clock() - self._begun.mark.at_ms
        return not self._begun.is_committed or age_ms >= self._work.limits.renew_ms


def _unlogged(*_: object) -> None:
    """Without a changelog nothing of a store outlives the run."""
