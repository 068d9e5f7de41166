"""The topics of the flights application that its user creates: inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

FLIGHTS = "flights"
PLANES = "planes"
OUTPUTS = ("aircraft-totals-output", "aircraft-sessions-output", "airport-hourly-output")

# The records are up to a year old by their timestamps: the default retention of a week would delete them.
KEEP_ALL = {"cleanup.policy": "delete", "retention.ms": "-1"}
KEEP_LATEST = {"cleanup.policy": "compact"}


def create_inputs(client: Mapping[str, object], partitions: int) -> None:
    """Create ``flights`` and ``planes`` with ``partitions`` partitions each. Existing topics stay as they are."""
    _create(client, {FLIGHTS: KEEP_ALL, PLANES: KEEP_LATEST}, partitions)


def create_outputs(client: Mapping[str, object], partitions: int, prefix: str = "") -> None:
    """Create the compacted output topics. Existing topics stay as they are."""
    _create(client, {prefix + name: KEEP_LATEST for name in OUTPUTS}, partitions)


def partition_count(client: Mapping[str, object], topic: str) -> int:
    """Return the present number of partitions of a topic. Raise KafkaException if it doesn't exist."""
    description = AdminClient(dict(client)).list_topics(topic, timeout=30).topics[topic]
    if description.error is not None:
        raise KafkaException(description.error)
    return len(description.partitions)


def _create(client: Mapping[str, object], configs: Mapping[str, dict[str, str]], partitions: int) -> None:
    topics = [NewTopic(name, partitions, config=config) for name, config in configs.items()]
    admin = AdminClient(dict(client))  # keep it alive, because its futures fail when it is collected
    for future in admin.create_topics(topics, operation_timeout=30).values():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
