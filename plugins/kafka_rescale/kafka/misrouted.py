"""Looking for misrouted records on the brokers: everything of the grown inputs from the fence to now."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.journal import Journal
from kafka_rescale.core.misrouted import InputReport, Place, grown_by_key, misrouted
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.range_reader import read_ranges


def look_for_misrouted(connection: KafkaConnection, journal: Journal) -> tuple[InputReport, ...]:
    """Read what has come into the inputs that were grown by key since the promotion; one report for each.

    :raises Outage: nothing is heard of the brokers.
    """
    admin = ClusterAdmin(connection)
    return tuple(
        misrouted(grown, _places(connection, admin, grown.topic, journal)) for grown in grown_by_key(journal.plan)
    )


def _places(connection: KafkaConnection, admin: ClusterAdmin, topic: str, journal: Journal) -> Iterator[Place]:
    begins, ends = admin.begin_offsets([topic])[topic], admin.end_offsets([topic])[topic]
    fence = journal.green_start.get(topic, {})
    ranges = {p: (max(fence.get(p, 0), begins[p]), end) for p, end in ends.items()}
    for message in read_ranges(connection, topic, ranges):
        key = message.key()
        yield Place(message.partition() or 0, message.offset() or 0, key.encode() if isinstance(key, str) else key)
