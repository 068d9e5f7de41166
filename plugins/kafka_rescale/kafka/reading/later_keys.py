"""Which keys a topic has got since some offsets, as far as the log goes when it is read."""

from __future__ import annotations

import time
from collections.abc import Mapping, Set

from confluent_kafka import Consumer, KafkaError, TopicPartition

from kafka_rescale.core.errors import ClusterOutage
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.error_classes import is_outage
from kafka_rescale.kafka.client.failures import to_error
from kafka_rescale.kafka.reading.range_reader import SETTINGS, STALL_SECONDS


def later_keys(connection: KafkaConnection, topic: str, since: Mapping[int, int], keys: Set[bytes]) -> set[bytes]:
    """Return those of some keys that have a committed record at or behind some offsets.

    Every partition is read until the broker says that there is no more. Up to fixed ends would not do: compaction
    may remove a key's record below such an end because of one behind it, before it is read. The last record of a
    key can't be removed, and this passes it.

    :param since: by partition.
    :raises ClusterOutage: the brokers don't answer.
    """
    if not keys:
        return set()
    # If retention is faster, everything that is left was written later still.
    consumer = Consumer(connection.client(**{**SETTINGS, "auto.offset.reset": "earliest"}))
    found, left, heard = set[bytes](), set(since), time.monotonic()
    try:
        consumer.assign([TopicPartition(topic, p, offset) for p, offset in since.items()])
        while left:
            messages = consumer.consume(5_000, 0.05)
            for message in messages:
                error, key = message.error(), message.key()
                if error is None:
                    if isinstance(key, bytes) and key in keys:
                        found.add(key)
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition() or 0)
                elif not is_outage(error):
                    raise to_error(error, f"topic {topic!r} partition {message.partition()}")
            heard = time.monotonic() if messages else heard
            if time.monotonic() - heard > STALL_SECONDS:
                raise ClusterOutage(f"topic {topic!r}", found="nothing", expected="records", remedy="Run again.")
    finally:
        consumer.close()
    return found
