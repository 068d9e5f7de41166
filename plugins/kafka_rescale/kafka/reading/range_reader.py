"""Reading ranges of a topic, up to fixed ends or as far as the log goes."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from kafka_rescale.core.errors import ClusterOutage
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.error_classes import may_pass
from kafka_rescale.kafka.client.failures import to_error

STALL_SECONDS = 60.0
STEP_SECONDS = 0.02
"""How long one call waits for more records. The last records of a range come only after this wait.

It is short because short ranges are read within a pause.
"""
AS_FAR_AS_IT_GOES = math.inf
SETTINGS = {
    # Nothing is committed, so this group never exists.
    "group.id": "kafka-rescale-read",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 5,
    # Each replica is cleaned by itself. Other code asks the leader what a log still has. So read from the leader.
    "client.rack": "",
}


def read_ranges(
    connection: KafkaConnection,
    topic: str,
    ranges: Mapping[int, tuple[int, float]],
    *,
    may_be_deleted: bool = False,
    committed: bool = True,
) -> Generator[Message, None, None]:
    """Yield the records of some partitions, each partition in the order of its offsets.

    :param ranges: per partition, first offset and end (exclusive). With ``AS_FAR_AS_IT_GOES`` as its end, a
        partition is read until the broker says that there is no more.
    :param may_be_deleted: whether records at the beginning may be deleted meanwhile. If not, that is an error.
    :param committed: if False, also yield what only a ``read_uncommitted`` consumer gets, such as records of
        aborted transactions.
    :raises ClusterOutage: the brokers don't answer.
    """
    left = {p: end for p, (start, end) in ranges.items() if start < end}
    if not left:
        return
    reset = {"auto.offset.reset": "earliest"} if may_be_deleted else {}
    isolation = {} if committed else {"isolation.level": "read_uncommitted"}
    consumer = Consumer(connection.client(**{**SETTINGS, **reset, **isolation}))
    try:
        consumer.assign([TopicPartition(topic, p, ranges[p][0]) for p in left])
        heard = time.monotonic()
        while left:
            messages = consumer.consume(5_000, STEP_SECONDS)
            for message in messages:
                yield from _within(message, topic, left)
            heard = time.monotonic() if messages else heard
            if time.monotonic() - heard > STALL_SECONDS:
                raise ClusterOutage(f"topic {topic!r}", found="nothing", expected="records", remedy="Run again.")
    finally:
        consumer.close()


def _within(message: Message, topic: str, left: dict[int, float]) -> Iterator[Message]:
    partition, offset, error = message.partition() or 0, message.offset() or 0, message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        if not may_pass(error):
            raise to_error(error, f"topic {topic!r} partition {partition}")
        return
    end = left.get(partition)
    if end is None:
        return
    if error is None and offset < end:
        yield message
    # An error that gets here is the end of the log: the code above handles all others.
    if offset + (0 if error else 1) >= end or (error is not None and end == AS_FAR_AS_IT_GOES):
        del left[partition]
