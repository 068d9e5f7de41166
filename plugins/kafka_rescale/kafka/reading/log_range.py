"""Where the log of a partition begins and ends."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from kafka_rescale.core.cluster import LogRange, TopicPartition
from kafka_rescale.kafka.client.failures import to_error

QUERY_SECONDS = 15.0


def log_range(consumer: Consumer, source: TopicPartition) -> LogRange:
    """Ask the brokers for the range of a partition.

    :param consumer: a ``read_committed`` consumer.
    :raises Outage: the brokers don't answer.
    """
    try:
        begin, end = consumer.get_watermark_offsets(KafkaPartition(*source), timeout=QUERY_SECONDS)
    except KafkaException as error:
        raise to_error(error.args[0], f"topic {source[0]} partition {source[1]}") from None
    return LogRange(begin, end)
