"""Whether real records, not only transaction markers, lie between two offsets."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, TopicPartition

from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.connection import KafkaConnection

_TIMEOUT_SECONDS = 10.0


def has_records(connection: KafkaConnection, topic: str, partition: int, start: int | None, end: int) -> bool:
    """Return whether a ``read_committed`` reader would find a record in ``[start, end)``.

    :param start: inclusive; ``None`` reads from the log start.
    :param end: exclusive, as a ``read_committed`` reader sees it.
    :raises Outage: the broker did not answer.
    """
    if start is not None and start >= end:
        return False
    settings = {
        "group.id": "kafka-rescale-look",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(connection.client(**settings))
    try:
        consumer.assign([TopicPartition(topic, partition, 0 if start is None else start)])
        message = consumer.poll(_TIMEOUT_SECONDS)
        if message is None:
            raise Outage(
                f"topic {topic} partition {partition}",
                found=f"no answer within {_TIMEOUT_SECONDS:.0f} s",
                expected="records or the end of the log",
                remedy="Look at the brokers' health; then retry.",
            )
        error = message.error()
        if error is None:
            return int(message.offset()) < end
        if error.code() == KafkaError._PARTITION_EOF:
            return False
        raise Outage(f"topic {topic} partition {partition}", found=str(error), expected="records", remedy="Retry.")
    finally:
        consumer.close()
