"""Which partitions have real records, not only transaction markers, between two offsets?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, TopicPartition

from kafka_rescale.core import cluster
from kafka_rescale.core.errors import ClusterOutage
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.error_classes import may_pass
from kafka_rescale.kafka.client.failures import to_error

Ranges = Mapping[cluster.TopicPartition, tuple[int | None, int]]
"""Start (inclusive; ``None`` is the log start) and end (exclusive, as a ``read_committed`` reader sees it)."""

_TIMEOUT_SECONDS = 10.0
_SETTINGS = {
    "group.id": "kafka-rescale-look",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    # If there are only markers, a broker answers after this time. It is asked within the pause.
    "fetch.wait.max.ms": 20,
    # The first record of each partition is enough.
    "queued.max.messages.kbytes": 1024,
    "fetch.message.max.bytes": 65_536,
}


def with_records(connection: KafkaConnection, ranges: Ranges) -> Iterator[cluster.TopicPartition]:
    """Yield the partitions in whose range a ``read_committed`` reader would find a record, as they are found.

    One consumer asks for all partitions: with a consumer for each, the waits would add up within the pause.

    :raises ClusterOutage: the brokers did not answer.
    """
    asked = {of: end for of, (start, end) in ranges.items() if start is None or start < end}
    if not asked:
        return
    consumer = Consumer(connection.client(**_SETTINGS))
    try:
        consumer.assign([TopicPartition(*of, ranges[of][0] or 0) for of in asked])
        yield from _found(consumer, asked)
    finally:
        consumer.close()


def _found(consumer: Consumer, asked: dict[cluster.TopicPartition, int]) -> Iterator[cluster.TopicPartition]:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while asked:
        message = consumer.poll(max(0.0, min(0.2, deadline - time.monotonic())))
        if message is None:
            if time.monotonic() >= deadline:
                raise _silent(asked)
            continue
        error, of = message.error(), (str(message.topic()), int(message.partition() or 0))
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            if not may_pass(error):
                raise to_error(error, f"topic {of[0]} partition {of[1]}")
            continue
        end = asked.pop(of, None)
        if end is None:
            continue
        # The partition has answered, so its other records don't have to be fetched.
        consumer.pause([TopicPartition(*of)])
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        if error is None and int(message.offset() or 0) < end:
            yield of


def _silent(asked: Mapping[cluster.TopicPartition, int]) -> ClusterOutage:
    topic, partition = next(iter(asked))
    return ClusterOutage(
        f"{len(asked)} partitions, such as {topic}-{partition}",
        found=f"no answer within {_TIMEOUT_SECONDS:.0f} s",
        expected="records or the end of the log",
        remedy="Look at the brokers' health; then retry.",
    )
