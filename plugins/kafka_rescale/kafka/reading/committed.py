"""The committed offsets of a group, and a consumer that commits nothing itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import Outage, RescaleError
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.failures import to_error
from kafka_rescale.kafka.client.waiting import poll_until

AT_ONCE = {"isolation.level": "read_uncommitted"}
"""A reader that only looks does not wait for the open transaction of a killed run: it doesn't count."""

COMMITTED_SECONDS = 30.0


def read_committed(
    consumer: Consumer, sources: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[int, str | None]]:
    """Return the committed offsets (next to read) and their metadata; partitions without an offset are left out.

    :param consumer: a ``read_committed`` consumer of the group: the answer then waits for open transactions.
    :raises Outage: the coordinator did not answer.
    """
    wanted = [KafkaPartition(topic, partition) for topic, partition in sources]
    found: list[KafkaPartition] = []
    failures: list[RescaleError] = []

    def answered() -> bool:
        # The first request of a group makes a broker load its coordinator, which causes errors for a moment.
        try:
            found[:] = consumer.committed(wanted, timeout=COMMITTED_SECONDS)
        except KafkaException as error:
            failures.append(to_error(error.args[0], "progress of the copy"))
        else:
            errors = [(entry, entry.error) for entry in found if entry.error is not None]
            failures.extend(to_error(error, f"progress of {e.topic}-{e.partition}") for e, error in errors)
            if not errors:
                return True
        if not isinstance(failures[-1], Outage):
            raise failures[-1]
        return False

    if wanted:
        poll_until(answered, seconds=COMMITTED_SECONDS, otherwise=lambda: failures[-1])
    return {(entry.topic, entry.partition): (entry.offset, entry.metadata) for entry in found if entry.offset >= 0}


def copy_consumer(connection: KafkaConnection, group: str, **tuning: object) -> Consumer:
    """Return a consumer for ``assign``: it reads committed records only, reports log ends, and commits nothing."""
    settings = {
        "group.id": group,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        # Each replica is cleaned by itself, but the leader is asked whether a log is whole. So read from the
        # leader.
        "client.rack": "",
        **tuning,
    }
    return Consumer(connection.client(**settings))


@contextmanager
def closing_consumer(connection: KafkaConnection, group: str, **tuning: object) -> Iterator[Consumer]:
    """Lend a consumer for look-ups; see ``copy_consumer``."""
    consumer = copy_consumer(connection, group, **tuning)
    try:
        yield consumer
    finally:
        consumer.close()
