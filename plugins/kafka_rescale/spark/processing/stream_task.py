"""One run of one task, from its committed offsets to captured ends. Each transaction is complete in itself.

1. Fence: ``init_transactions`` of the task's own transactional id ends whatever an older attempt had begun.
2. Positions: read the committed offsets of the application's group, and the checkpoint beside them.
3. State: load the newest saved state and the rest of the changelog, or the whole changelog. Delete keys that
   belong to a processor that was added since.
4. Batches: write outputs and changelog records as they come; commit them with offsets and checkpoint.
5. Files: save only committed state, so that no file is ever ahead of the changelog.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.formats.record_limits import RecordLimits
from kafka_rescale.core.pipeline.failure import blame
from kafka_rescale.core.pipeline.stores.record_cache import RecordCache
from kafka_rescale.core.pipeline.task import Record, StoreView, SubTopology, TaskProcessor
from kafka_rescale.core.processing.expiry import Expiry
from kafka_rescale.core.processing.task_state import TaskMark
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.processing.batches import BatchSize, batch_of
from kafka_rescale.kafka.processing.grown_ends import holds
from kafka_rescale.kafka.processing.task_input import TaskInput
from kafka_rescale.kafka.processing.task_producer import RefusedRecord, TaskProducer
from kafka_rescale.spark.processing.logged_store import LoggedStore, Restored
from kafka_rescale.spark.processing.moved_keys import has_to_let_go, moved_keys
from kafka_rescale.spark.processing.state_files import StateFiles
from kafka_rescale.spark.processing.state_store import TaskStore
from kafka_rescale.spark.processing.task_beginning import beginning
from kafka_rescale.spark.processing.task_records import (
    in_interval,
    positions_before,
    process,
    records_of,
    split_at_first_bad,
    write,
)
from kafka_rescale.spark.processing.task_work import TaskDone, TaskWork


class StreamTask:
    """One attempt from the committed offsets on. After an aborted transaction, its memory can't be used any more.

    :param producer: producer of the task, which has fenced every older attempt.
    :param consumer: consumer of the application's group.
    :param known: the failure of an earlier attempt, which names a record. This attempt stops before that record.
    :param careful: write the results of each record by themselves, to find the record whose results brokers
        refuse.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        work: TaskWork,
        subtopology: SubTopology,
        producer: TaskProducer,
        consumer: Consumer,
        clock: Callable[[], int],
        known: Exception | None = None,
        *,
        careful: bool = False,
    ) -> None:
        self._connection, self._work, self._subtopology = connection, work, subtopology
        self._producer, self._consumer, self._clock, self._known = producer, consumer, clock, known
        self._careful = careful
        limits = {name: RecordLimits.of(topic, clock(), 0) for name, topic in work.topics.items() if careful}
        producer.look_closely(limits)
        self._begun = beginning(connection, work, subtopology, consumer)
        self._positions: Mapping[TopicPartition, int] = self._begun.positions
        self._mark = self._begun.mark.model_dump_json()
        logs, place = self._begun.changelogs, (work.state_dir, work.application_id, work.task)
        self._stores = {
            store.name: LoggedStore(
                connection, logs[store.name], StateFiles.of(*place, store.name), producer, clock, Expiry.of(store)
            )
            for store in subtopology.stores
            if store.is_logged
        }
        self._restored: list[Restored] = []
        self._records = self._emitted = self._transactions = self._dropped = self._moved = 0
        self._stream_time = -1
        self._signed = time.monotonic()

    def process(self) -> None:
        """Process everything up to the ends, commit, and save the state."""
        begun, lets_go = self._begun, has_to_let_go(self._work, self._begun.mark)
        has_input = any(begun.positions[source] < end for source, end in self._work.ends.items())
        if self._is_renewal_due():
            # Commit the offsets before anything is written. Any record in a changelog counts as state, even the
            # record of a killed attempt, and the next run refuses state without offsets.
            self._commit(begun.positions, begun.mark.checkpoint, begun.mark.processors)
        if has_input or lets_go:
            processor = self._processor()
            if lets_go:
                self._let_go()
            self._process_all(processor)
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
            let_go=self._moved,
            mark=self._mark,
        )

    def _processor(self) -> TaskProcessor:
        self._restored = [store.restore(self._goes_on) for store in self._stores.values()]
        views: dict[str, StoreView] = {name: store.store for name, store in self._stores.items()}
        # A store without a changelog does not outlive the run.
        views |= {s.name: TaskStore(lambda *_: None) for s in self._subtopology.stores if not s.is_logged}
        # Without a cache, each update is written beside the record that causes it. So a refused update is found.
        is_cached = self._work.cache_bytes and not self._careful
        cache = RecordCache(self._work.cache_bytes, self._work.names) if is_cached else None
        processor = self._subtopology.processor(views, self._work.task.partition, cache)
        processor.restore(self._begun.mark.checkpoint)
        return processor

    def _process_all(self, processor: TaskProcessor) -> None:
        limits, pending, began = self._work.limits, 0, time.monotonic()
        begins, ends = self._begun.positions, self._work.ends
        waiting = holds(self._connection, self._work.grown, begins, ends, self._goes_on)
        source = TaskInput(self._consumer, begins, ends, waiting, self._work.own_names)
        records = records_of(source.records(), self._work)
        size = BatchSize(1 if self._careful else limits.batch_records, limits.seconds)
        while batch := batch_of(records, size.now, limits.seconds):
            handed, asked = time.monotonic(), in_interval(batch, self._work.backfill)
            fit, wrong = split_at_first_bad(asked, self._work, self._known)
            with self._producer.transaction(), self._placed(fit):
                emitted = process(processor, fit, self._work.backfill)
                write(self._producer, emitted, self._work)
            size.took(len(batch), time.monotonic() - handed)
            self._emitted += len(emitted)
            pending += len(batch)
            self._records += len(fit)
            if wrong is not None:
                left = positions_before(asked[len(fit) :], source.positions(), self._work)
                self._flush_and_commit(processor, left)
                raise wrong
            if pending >= limits.records or time.monotonic() - began >= limits.seconds:
                self._flush_and_commit(processor, source.positions())
                pending, began = 0, time.monotonic()
        if pending or source.positions() != self._positions:
            self._flush_and_commit(processor, source.positions())
        self._dropped, self._stream_time = processor.dropped_records(), processor.stream_time()

    @contextmanager
    def _placed(self, records: Sequence[Record]) -> Iterator[None]:
        """Name the input record in the error about a refused result, if records are handed over one by one."""
        if not self._careful or not records:
            yield
            return
        [record] = records
        place = f"topic {self._work.names[record.topic]} partition {record.partition} offset {record.offset}"
        try:
            try:
                yield
            except KafkaException:
                # After brokers have refused a record, the client takes no more records.
                self._producer.assert_accepted(place)
                raise
            self._producer.assert_accepted(place)
        except RefusedRecord as refused:
            error = RefusedRecord.of(refused.complaint.about(place))
            blame(error, record)
            raise error from None

    def _let_go(self) -> None:
        """Delete keys that new processors have taken over. The changelogs of these processors have them by now."""
        begun = self._begun
        for store, moved in moved_keys(self._work, self._subtopology, self._stores):
            with self._producer.transaction():
                for row in moved:
                    store.put(row["key"], None, row["timestamp"])
            self._commit(begun.positions, begun.mark.checkpoint, begun.mark.processors)
            self._moved += len(moved)
        self._commit(begun.positions, begun.mark.checkpoint)

    def _flush_and_commit(self, processor: TaskProcessor, positions: Mapping[TopicPartition, int]) -> None:
        """Write what the record cache has kept back, and commit."""
        with self._producer.transaction():
            emitted = processor.flush()
            write(self._producer, emitted, self._work)
        self._emitted += len(emitted)
        self._commit(positions, processor.checkpoint())

    def _commit(
        self, positions: Mapping[TopicPartition, int], checkpoint: str, processors: int | None = None
    ) -> None:
        """Commit the written records.

        :param processors: the number of processors that the stores' contents belong to; None for the number of
            this run.
        """
        at_ms = self._clock()
        as_of = self._work.processors if processors is None else processors
        mark = TaskMark(at_ms=at_ms, checkpoint=checkpoint, processors=as_of).model_dump_json()
        offsets = [KafkaPartition(*source, at, metadata=mark) for source, at in positions.items()]
        self._producer.commit(offsets, self._consumer)
        self._positions, self._mark = positions, mark
        self._transactions += 1
        for store in self._stores.values():
            store.committed(at_ms)

    def _goes_on(self) -> None:
        """Commit the same offsets with a newer mark while nothing is processed yet, as a sign of progress.

        A restore may take hours, and from outside it would look like a task that is stuck.
        """
        if time.monotonic() - self._signed < self._work.limits.sign_seconds:
            return
        mark = TaskMark.of(self._mark).model_copy(update={"at_ms": self._clock()}).model_dump_json()
        offsets = [KafkaPartition(*source, at, metadata=mark) for source, at in self._positions.items()]
        self._producer.commit(offsets, self._consumer)
        self._mark, self._signed = mark, time.monotonic()

    def _is_renewal_due(self) -> bool:
        age_ms = self._clock() - self._begun.mark.at_ms
        return not self._begun.is_committed or age_ms >= self._work.limits.renew_ms
