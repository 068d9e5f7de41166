"""Reads a few of the oldest and of the newest records of every partition, without leaving a trace."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.formats.record_batches import size_of
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.error_classes import may_pass
from kafka_rescale.kafka.client.failures import ConnectionTrouble, to_error

RECORDS_PER_SLICE = 100
RECORDS_IN_ALL = 20_000
KEPT_VALUE_BYTES = 4096
SECONDS = 20.0

_SETTINGS = {
    # Partitions are assigned by hand and nothing is committed, so this group never exists.
    "group.id": "kafka-rescale-preflight",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "fetch.message.max.bytes": 64 * 1024,
    "queued.max.messages.kbytes": 8 * 1024,
    "fetch.wait.max.ms": 50,
}

Slice = tuple[int, int]
"""First offset, and the offset at which to stop."""
_Partition = tuple[str, int]


@dataclass(frozen=True)
class Sampled:
    """The samples.

    :param unread: partitions that are not empty, but of which no record was read in time.
    """

    samples: tuple[Sample, ...]
    unread: tuple[_Partition, ...] = ()


@dataclass
class _Reading:
    """The slices that are still to be read, and the records so far."""

    pending: dict[_Partition, Slice]
    limit: int
    read: dict[_Partition, int] = field(default_factory=dict)

    def take(self, message: Message) -> Sample | None:
        """Return the record if its slice wants it, and remove finished slices."""
        at = (str(message.topic()), int(message.partition() or 0))
        if at not in self.pending:
            return None
        error, offset = message.error(), int(message.offset() or 0)
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                del self.pending[at]
            elif not may_pass(error):
                raise to_error(error, f"topic {at[0]!r}")
            return None
        self.read[at] = self.read.get(at, 0) + 1
        stop = self.pending[at][1]
        if offset + 1 >= stop or self.read[at] >= self.limit:
            del self.pending[at]
        return _sample(message, at, offset) if offset < stop else None


def sample(
    connection: KafkaConnection,
    begins: PartitionOffsets,
    ends: PartitionOffsets,
    *,
    records: int = RECORDS_PER_SLICE,
    seconds: float = SECONDS,
) -> Sampled:
    """Return records from both ends of every partition.

    :param begins: log start offsets of the topics to look at.
    :param ends: their ends (exclusive) for a ``read_committed`` reader.
    :param records: how many records from each end of each partition; fewer if there are very many partitions.
    :param seconds: how long to read in all.
    :raises InvalidInput: the user of the connection may not read a topic.
    """
    slices = list(_slices(begins, ends))
    limit = max(1, min(records, RECORDS_IN_ALL // max(1, 2 * len(slices))))
    deadline = time.monotonic() + seconds
    oldest = {at: (begin, min(end, begin + limit)) for at, (begin, end) in slices}
    newest = {at: (max(begin + limit, end - limit), end) for at, (begin, end) in slices if end > begin + limit}
    trouble = ConnectionTrouble(connection.servers)
    consumer = Consumer(connection.client(**_SETTINGS, error_cb=trouble))
    found: dict[tuple[str, int, int], Sample] = {}
    late: set[_Partition] = set()
    try:
        for wanted in (oldest, newest):
            reading = _Reading(dict(wanted), limit)
            for each in _read(consumer, reading, deadline, trouble):
                found[each.topic, each.partition, each.offset] = each
            late |= reading.pending.keys() - reading.read.keys()
    except KafkaException as error:
        raise to_error(error.args[0], "sampled topics") from None
    finally:
        consumer.close()
    return Sampled(tuple(found[at] for at in sorted(found)), tuple(sorted(late)))


def _slices(begins: PartitionOffsets, ends: PartitionOffsets) -> Iterator[tuple[_Partition, Slice]]:
    for topic, by_partition in ends.items():
        for partition, end in by_partition.items():
            begin = begins.get(topic, {}).get(partition, 0)
            if end > begin:
                yield (topic, partition), (begin, end)


def _read(consumer: Consumer, reading: _Reading, deadline: float, trouble: ConnectionTrouble) -> Iterable[Sample]:
    consumer.assign([TopicPartition(topic, p, start) for (topic, p), (start, _) in reading.pending.items()])
    while reading.pending and time.monotonic() < deadline:
        messages = consumer.consume(500, timeout=0.2)
        if not messages and trouble.refusal is not None:
            raise trouble.refusal
        yield from filter(None, map(reading.take, messages))


def _sample(message: Message, at: _Partition, offset: int) -> Sample:
    key, value, headers = _bytes(message.key()), _bytes(message.value()), tuple(message.headers() or ())
    batch_bytes = size_of(key, value, headers)
    # No check reads a part of a value, and 20,000 large values would be too many to keep.
    value = None if value is not None and len(value) > KEPT_VALUE_BYTES else value
    return Sample(
        topic=at[0],
        partition=at[1],
        offset=offset,
        key=key,
        timestamp_ms=message.timestamp()[1],
        value=value,
        headers=headers,
        batch_bytes=batch_bytes,
    )


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def record_counts(begins: Mapping[str, Mapping[int, int]], ends: PartitionOffsets) -> dict[str, int]:
    """Return an upper bound of the number of records per topic: offsets may have holes."""
    return {
        topic: sum(end - begins.get(topic, {}).get(partition, 0) for partition, end in by_partition.items())
        for topic, by_partition in ends.items()
    }
