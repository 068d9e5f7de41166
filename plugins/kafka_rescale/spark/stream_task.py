"""One run of one task: from its committed offsets to captured ends, in transactions each complete in itself.

1. Fence: ``init_transactions`` of the task's own transactional id ends whatever an older attempt had begun.
2. Positions: the committed offsets of the application's group, and the checkpoint beside them.
3. State: the newest saved state, and the rest of the changelog; or all of the changelog. What belongs to a
   processor that was added since is deleted.
4. Batches: outputs and changelog records as they come, offsets and checkpoint with them, in one transaction.
5. Files: only what is committed is saved, so that no file is ever ahead of the changelog.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as KafkaPartition

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import Fenced, Outage
from kafka_rescale.core.linear_hashing import LinearHashing
from kafka_rescale.core.partitioners import partitioner_named
from kafka_rescale.core.pipeline.task import Emitted, Record, StoreView, SubTopology, TaskProcessor
from kafka_rescale.core.processing.expiry import Expiry
from kafka_rescale.core.processing.state_copies import owners
from kafka_rescale.core.processing.task_start import SourceRange, task_start
from kafka_rescale.core.processing.task_state import Changelog, TaskMark
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.copy_marks import copy_consumer, read_committed
from kafka_rescale.kafka.copy_producer import Rewound
from kafka_rescale.kafka.copy_settings import SourceRules
from kafka_rescale.kafka.copy_start import log_range
from kafka_rescale.kafka.grown_ends import holds
from kafka_rescale.kafka.task_input import TaskInput
from kafka_rescale.kafka.task_producer import ANY_PARTITION, TaskProducer
from kafka_rescale.kafka.waiting import now_ms
from kafka_rescale.spark.logged_store import LoggedStore, Restored
from kafka_rescale.spark.state_files import StateFiles
from kafka_rescale.spark.state_store import TaskStore
from kafka_rescale.spark.task_work import TaskDone, TaskWork

PARTITIONER = partitioner_named("murmur2")
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
        self._own_names = work.own_names
        self._begun_at = read_committed(consumer, work.ends)
        self._mark = max(
            (TaskMark.of(text) for _, text in self._begun_at.values()), key=lambda m: m.at_ms, default=TaskMark()
        )
        changelogs = self._changelogs()
        self._refuse_older_than_committed()
        self._start = self._started(changelogs)
        self._positions: Mapping[TopicPartition, int] = self._start
        self._stores = {
            store.name: LoggedStore(
                connection, changelogs[store.name], self._files(store.name), producer, clock, Expiry.of(store)
            )
            for store in subtopology.stores
            if store.is_logged
        }
        self._restored: list[Restored] = []
        self._records = self._emitted = self._transactions = self._dropped = self._let_go = 0
        self._stream_time = -1

    def process(self) -> None:
        """Process everything up to the ends, commit, and save the state."""
        has_work = self._has_to_let_go or any(self._start[s] < end for s, end in self._work.ends.items())
        if self._is_renewal_due():
            # Before anything is written: a changelog that holds anything, if only of a killed attempt, is state.
            self._commit(self._start, self._mark.checkpoint, self._mark.processors)
        if has_work:
            processor = self._processor()
            if self._has_to_let_go:
                self._let_go_of_moved()
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
            let_go=self._let_go,
        )

    def _processor(self) -> TaskProcessor:
        self._restored = [store.restore() for store in self._stores.values()]
        views: dict[str, StoreView] = {name: store.store for name, store in self._stores.items()}
        views |= {s.name: TaskStore(_unlogged) for s in self._subtopology.stores if not s.is_logged}
        processor = self._subtopology.processor(views, self._work.task.partition)
        processor.restore(self._mark.checkpoint)
        return processor

    def _process_all(self, processor: TaskProcessor) -> None:
        limits, pending, began = self._work.limits, 0, time.monotonic()
        waiting = holds(self._connection, self._work.grown, self._start, self._work.ends)
        source = TaskInput(self._consumer, self._start, self._work.ends, waiting)
        records = map(self._record, source.records())
        while batch := list(islice(records, limits.batch_records)):
            self._check_places(batch)
            with self._producer.transaction():
                self._emit(processor.process_batch(batch))
            pending += len(batch)
            self._records += len(batch)
            if pending >= limits.records or time.monotonic() - began >= limits.seconds:
                self._commit(source.positions(), processor.checkpoint())
                pending, began = 0, time.monotonic()
        if pending or source.positions() != self._positions:
            self._commit(source.positions(), processor.checkpoint())
        self._dropped, self._stream_time = processor.dropped_records(), processor.stream_time()

    @property
    def _has_to_let_go(self) -> bool:
        """Whether processors have been added since this one has last committed."""
        return (self._mark.processors or self._work.initial) < self._work.processors

    def _let_go_of_moved(self) -> None:
        """Delete what new processors have taken over; they have it in changelogs of their own by now."""
        work, size = self._work, self._work.limits.records
        for store in self._subtopology.stores:
            if not store.is_logged:
                continue
            entries = self._stores[store.name].store
            rows = entries.all_rows().select(["key", "timestamp"]).to_pylist()
            owner = owners(store.kind, [row["key"] for row in rows], work.initial, work.processors)
            moved = [row for row, its in zip(rows, owner, strict=True) if its != work.task.partition]
            for at in range(0, len(moved), size):
                with self._producer.transaction():
                    for row in moved[at : at + size]:
                        entries.put(row["key"], None, row["timestamp"])
                self._commit(self._start, self._mark.checkpoint, self._mark.processors)
            self._let_go += len(moved)
        self._commit(self._start, self._mark.checkpoint)

    def _check_places(self, batch: Sequence[Record]) -> None:
        for full, topic in self._work.grown.items():
            own = self._own_names[full]
            topic.check((r.partition, r.offset, r.key) for r in batch if r.topic == own)

    def _refuse_older_than_committed(self) -> None:
        """Let a run that was asked for before processors were added do nothing: others have its partitions."""
        known = max((TaskMark.of(text).processors for _, text in self._begun_at.values()), default=0)
        if known > max(self._work.processors, self._work.initial):
            raise Fenced(
                f"task {self._work.transactional_id}",
                found=f"offsets that were committed with {known} processors",
                expected=f"at most the {self._work.processors} of this run",
                remedy="Nothing to do here: processors were added since, and a newer run goes on.",
            )

    def _commit(
        self, positions: Mapping[TopicPartition, int], checkpoint: str, processors: int | None = None
    ) -> None:
        """Commit what was written.

        :param processors: as of which the stores are; by default those of this run.
        """
        at_ms = self._clock()
        as_of = self._work.processors if processors is None else processors
        metadata = TaskMark(at_ms=at_ms, checkpoint=checkpoint, processors=as_of).model_dump_json()
        offsets = [KafkaPartition(*source, at, metadata=metadata) for source, at in positions.items()]
        self._producer.commit(offsets, self._consumer)
        self._positions = positions
        self._transactions += 1
        for store in self._stores.values():
            store.committed(at_ms)

    def _emit(self, emitted: Sequence[Emitted]) -> None:
        for record, partition in zip(emitted, self._partitions(emitted), strict=True):
            self._producer.produce(
                self._work.names[record.topic],
                record.value,
                record.key,
                partition,
                timestamp=record.timestamp_ms,
                headers=list(record.headers) or None,
            )
        self._emitted += len(emitted)

    def _partitions(self, emitted: Sequence[Emitted]) -> list[int]:
        """Return where each record goes; a record without a key goes where the producer likes."""
        found = [ANY_PARTITION if e.partition is None else e.partition for e in emitted]
        by_topic: dict[str, list[int]] = {}
        for at, record in enumerate(emitted):
            if record.partition is None and record.partitioning_key is not None:
                by_topic.setdefault(record.topic, []).append(at)
        for topic, places in by_topic.items():
            keys = [emitted[at].partitioning_key or b"" for at in places]
            full = self._work.names[topic]
            linear = self._work.linear.get(full)
            partitioner = LinearHashing(linear) if linear else PARTITIONER
            count = self._work.topics[full].partitions
            for at, partition in zip(places, partitioner.partition_batch(keys, count), strict=True):
                found[at] = partition
        return found

    def _record(self, message: Message) -> Record:
        key: Any = message.key()
        value: Any = message.value()
        headers: Any = message.headers()
        return Record(
            self._own_names[message.topic() or ""],
            message.partition() or 0,
            message.offset() or 0,
            message.timestamp()[1],
            key,
            value,
            tuple(headers) if headers else (),
        )

    def _started(self, changelogs: Mapping[str, Changelog]) -> dict[TopicPartition, int]:
        ranges = {source: log_range(self._consumer, source) for source in self._work.ends}
        return task_start(
            str(self._work.task),
            {source: offset for source, (offset, _) in self._begun_at.items()},
            {source: SourceRange(log.begin, log.end) for source, log in ranges.items()},
            has_state=any(changelog.end > changelog.begin for changelog in changelogs.values()),
        )

    def _changelogs(self) -> dict[str, Changelog]:
        """Return the changelog partition of each logged store, as it is now that nobody else writes to it."""
        stores = [store for store in self._subtopology.stores if store.is_logged]
        uncommitted = {"isolation.level": "read_uncommitted"}
        looking = copy_consumer(self._connection, self._work.application_id, **uncommitted)
        try:
            return {store.name: self._changelog(self._work.changelog(store), looking) for store in stores}
        finally:
            looking.close()

    def _changelog(self, topic: str, looking: Consumer) -> Changelog:
        described, partition = self._work.topics[topic], self._work.task.partition
        log = log_range(looking, (topic, partition))
        rules = SourceRules.of(described)
        return Changelog(topic, described.topic_id, partition, log.begin, log.end, rules.tombstone_ms)

    def _files(self, store: str) -> StateFiles:
        return StateFiles(self._work.state_dir, f"{self._work.application_id}/{self._work.task}/{store}")

    def _is_renewal_due(self) -> bool:
        never = len(self._begun_at) < len(self._work.ends)
        return never or self._clock() - self._mark.at_ms >= self._work.limits.renew_ms


def _unlogged(*_: object) -> None:
    """Without a changelog nothing of a store outlives the run."""
