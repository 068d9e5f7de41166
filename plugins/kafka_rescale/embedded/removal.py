"""Sabotage for the demo and the tests: a record taken out of a topic."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.connection import KafkaConnection


def remove_first_record(connection: KafkaConnection, topic: str) -> bytes:
    """Delete the first record of the first partition that has one, and return its key.

    :raises LookupError: the topic is empty.
    """
    admin = ClusterAdmin(connection)
    settings = {"group.id": "unused", "enable.auto.commit": False, "isolation.level": "read_committed"}
    for partition, begin in admin.begin_offsets([topic])[topic].items():
        consumer = Consumer(connection.client(**settings, **{"auto.offset.reset": "earliest"}))
        try:
            consumer.assign([TopicPartition(topic, partition, begin)])
            message = consumer.poll(10)
            if message is not None and message.error() is None:
                admin.delete_records({topic: {partition: message.offset() + 1}})
                return bytes(message.key())
        finally:
            consumer.close()
    raise LookupError(f"{topic} has no records")
