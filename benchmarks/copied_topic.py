"""The changelog that all contestants read, and the check of their copies."""

from __future__ import annotations

import secrets
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from kafka_rescale.core.partitioning.partitioners import Murmur2
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.copy.settings import BULK

from benchmarks.sizes import AFTER, BEFORE

VALUE_BYTES = 84
RECORD_BYTES = 16 + VALUE_BYTES
STORE = "aircraft-totals"
_POOL = secrets.token_hex(50_000).encode()


@dataclass(frozen=True)
class Fingerprint:
    """The fingerprint of a topic. It is equal if the topic has the same records in any order."""

    records: int
    checksum: int


def changelog_move(source: str, green: str) -> Move:
    """Return the move of the changelog to a target of its own."""
    return Move(
        kind=MoveKind.CHANGELOG,
        source=source,
        target=f"{green}-{STORE}-changelog",
        store=STORE,
        store_type="timestamped-key-value",
        source_partitions=BEFORE,
        target_partitions=AFTER,
    )


def fill(connection: KafkaConnection, topic: str, records: int, partitions: int = BEFORE) -> None:
    """Write records of 100 bytes with distinct keys, in the partitions that Kafka Streams would choose."""
    producer = Producer(connection.client(**{"linger.ms": 20, "queue.buffering.max.messages": 500_000}))
    now_ms = int(time.time() * 1000)
    for begin in range(0, records, 10_000):
        numbers = range(begin, min(records, begin + 10_000))
        keys = [b"aircraft%08d" % number for number in numbers]
        for number, key, partition in zip(numbers, keys, Murmur2().partition_batch(keys, partitions), strict=True):
            at = number * 7 % (len(_POOL) - VALUE_BYTES)
            timestamp = now_ms - records + number
            producer.produce(topic, _POOL[at : at + VALUE_BYTES], key, partition, timestamp=timestamp)
        producer.flush()


def fingerprint(connection: KafkaConnection, topic: str, partitions: int) -> Fingerprint:
    """Read a whole topic.

    :raises ValueError: a record is in a partition where Kafka Streams would not look for it.
    """
    records = checksum = 0
    for batch in read_all(connection, topic, partitions, isolation="read_committed"):
        keys = [message.key() or b"" for message in batch]
        if Murmur2().partition_batch(keys, partitions) != [message.partition() for message in batch]:
            raise ValueError(f"{topic} has a record in a wrong partition")
        records += len(batch)
        for message, key in zip(batch, keys, strict=True):
            checksum += zlib.crc32(message.value() or b"", zlib.crc32(key)) * (message.timestamp()[1] % 1_000_003)
    return Fingerprint(records, checksum)


def read_all(
    connection: KafkaConnection, topic: str, partitions: int, isolation: str = "read_uncommitted"
) -> Iterator[list[Message]]:
    """Yield batches of records up to the present end. The consumer is tuned like that of the copy."""
    to_the_end = {"group.id": "unused", "enable.auto.commit": False, "enable.partition.eof": True}
    settings = {**BULK.consumer(), **to_the_end, "isolation.level": isolation}
    consumer = Consumer(connection.client(**settings))
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
    left = set(range(partitions))
    while left:
        batch = []
        for message in consumer.consume(BULK.poll_records, 0.1):
            error = message.error()
            if error is None:
                batch.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
            else:
                raise KafkaException(error)
        yield batch
    consumer.close()
