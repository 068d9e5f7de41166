"""Sabotage for the demo and the tests: remove a record from a topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.processes import wait_until

DELETABLE = {"cleanup.policy": "compact,delete", "retention.ms": "-1"}


def remove_first_record(connection: KafkaConnection, topic: str) -> bytes:
    """Delete the first record of the first partition with records, and return its key.

    :raises LookupError: the topic is empty.
    """
    message = _first_record(connection, ClusterAdmin(connection), topic)
    remove_records(connection, topic, {message.partition: message.offset + 1})
    return message.key


def remove_records(connection: KafkaConnection, topic: str, before: Mapping[int, int]) -> None:
    """Delete the records below some offsets, by partition.

    Brokers delete records only if the cleanup policy allows it. The topic's own configs are put back afterwards.
    """
    admin = ClusterAdmin(connection)
    overrides = admin.describe_topics([topic])[topic].overrides
    admin.alter_configs(topic, DELETABLE)
    try:

        def deleted() -> bool:
            try:
                admin.delete_records({topic: dict(before)})
            except UnsafeState:
                return False  # the leader has not heard of the new policy yet
            return True

        wait_until(deleted, timeout=30, what=f"the leader of {topic} to accept the deletion")
    finally:
        admin.alter_configs(topic, {name: overrides.get(name) for name in DELETABLE})


class _Found(NamedTuple):
    partition: int
    offset: int
    key: bytes


def _first_record(connection: KafkaConnection, admin: ClusterAdmin, topic: str) -> _Found:
    settings = {"group.id": "unused", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    begins, ends = admin.begin_offsets([topic])[topic], admin.end_offsets([topic])[topic]
    for partition, begin in begins.items():
        if begin == ends[partition]:
            continue
        consumer = Consumer(connection.client(**settings))
        try:
            consumer.assign([TopicPartition(topic, partition, begin)])
            message = consumer.poll(10)
            if message is not None and message.error() is None:
                return _Found(partition, message.offset(), bytes(message.key()))
        finally:
            consumer.close()
    raise LookupError(f"{topic} has no records")
