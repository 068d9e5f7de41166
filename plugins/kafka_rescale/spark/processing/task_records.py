"""The records that a task's processor gets, and the results that are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from confluent_kafka import Message

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.partitioning.linear_hashing import LinearHashing
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.pipeline.failure import culprit
from kafka_rescale.core.pipeline.task import Emitted, Record, TaskProcessor
from kafka_rescale.core.processing.backfill import Backfill
from kafka_rescale.core.processing.grown_topic import GrownTopic
from kafka_rescale.core.processing.static_topic import StaticTopic
from kafka_rescale.core.topology.topology import is_internal
from kafka_rescale.kafka.processing.task_producer import ANY_PARTITION, TaskProducer
from kafka_rescale.spark.processing.task_work import TaskWork

PARTITIONER = partitioner_named("murmur2")


def records_of(messages: Iterable[Message], work: TaskWork) -> Iterator[Record]:
    """Yield the records that are read, with the pipeline's own names of topics."""
    own_names = work.own_names
    for message in messages:
        yield _record(message, own_names)


def in_interval(batch: Sequence[Record], backfill: Backfill | None) -> Sequence[Record]:
    """Return the records to process: all of them, or those before the end of a backfill's interval."""
    return batch if backfill is None else [r for r in batch if r.timestamp_ms < backfill.end_ms]


def split_at_first_bad(
    batch: Sequence[Record], work: TaskWork, known: Exception | None
) -> tuple[Sequence[Record], Exception | None]:
    """Return the records before the first one that stops the task, and what is wrong with that record.

    A record stops the task if its topic has grown and the record is not where its key belongs, or if the pipeline
    has failed with it.

    :param known: the failure of the pipeline in an earlier attempt.
    """
    failed = culprit(known) if known is not None else None
    number = next((at for at, record in enumerate(batch) if record == failed), None)
    fit, wrong = (batch, None) if number is None else (batch[:number], known)
    try:
        _check_places(fit, work)
    except UnsafeState:
        for at, record in enumerate(fit):
            try:
                _check_places([record], work)
            except UnsafeState as error:
                return fit[:at], error
    return fit, wrong


def positions_before(
    left: Sequence[Record], positions: Mapping[TopicPartition, int], work: TaskWork
) -> dict[TopicPartition, int]:
    """Return the offsets from which the next run reads, if some records are left to it.

    :param left: the records that are left. This run has read them already.
    :param positions: the offsets behind everything that was read.
    """
    first: dict[TopicPartition, int] = {}
    for record in left:
        first.setdefault((work.names[record.topic], record.partition), record.offset)
    return {**positions, **first}


def _check_places(batch: Sequence[Record], work: TaskWork) -> None:
    own_names = work.own_names
    topics: dict[str, GrownTopic | StaticTopic] = {**work.grown, **work.static}
    for full, topic in topics.items():
        topic.check((r.partition, r.offset, r.key) for r in batch if r.topic == own_names[full])


def process(processor: TaskProcessor, batch: Sequence[Record], backfill: Backfill | None) -> list[Emitted]:
    """Process a batch, and return the results to be written.

    Records before the backfill interval rebuild state and emit nothing, except results whose timestamp falls
    inside the interval: a late record can produce those.
    """
    if backfill is None:
        return processor.process_batch(batch)
    found: list[Emitted] = []
    for is_replayed, part in groupby(batch, lambda record: record.timestamp_ms < backfill.start_ms):
        emitted = processor.process_batch(list(part))
        found += (
            each
            for each in emitted
            if not is_replayed or each.timestamp_ms >= backfill.start_ms or is_internal(each.topic)
        )
    return found


def write(producer: TaskProducer, emitted: Sequence[Emitted], work: TaskWork) -> None:
    """Hand records for sinks to the producer, each with its partition."""
    for record, partition in zip(emitted, _partitions(emitted, work), strict=True):
        producer.produce(
            work.names[record.topic],
            record.value,
            record.key,
            partition,
            timestamp=record.timestamp_ms,
            headers=list(record.headers) or None,
        )


def _partitions(emitted: Sequence[Emitted], work: TaskWork) -> list[int]:
    """Return the partition of each record; for a record without a key, the producer chooses one."""
    found = [ANY_PARTITION if e.partition is None else e.partition for e in emitted]
    by_topic: dict[str, list[int]] = {}
    for at, record in enumerate(emitted):
        if record.partition is None and record.partitioning_key is not None:
            by_topic.setdefault(record.topic, []).append(at)
    for topic, places in by_topic.items():
        keys = [emitted[at].partitioning_key or b"" for at in places]
        full = work.names[topic]
        linear = work.linear.get(full)
        partitioner = LinearHashing(linear) if linear else PARTITIONER
        count = work.topics[full].partitions
        for at, partition in zip(places, partitioner.partition_batch(keys, count), strict=True):
            found[at] = partition
    return found


def _record(message: Message, own_names: Mapping[str, str]) -> Record:
    key: Any = message.key()
    value: Any = message.value()
    headers: Any = message.headers()
    return Record(
        own_names[message.topic() or ""],
        message.partition() or 0,
        message.offset() or 0,
        message.timestamp()[1],
        key,
        value,
        tuple(headers) if headers else (),
    )
