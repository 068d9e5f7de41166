"""Looking for misrouted records on the brokers: this reads the grown inputs from the fence up to now."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.control.acceptances import Acceptances, OffsetRange
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.verify.misrouted import InputReport, Place, grown_by_key, misrouted
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.range_reader import read_ranges

NOTHING_ACCEPTED = Acceptances()


def look_for_misrouted(
    connection: KafkaConnection, journal: Journal, acceptances: Acceptances = NOTHING_ACCEPTED
) -> tuple[InputReport, ...]:
    """Check the records since the promotion in inputs that were grown by key; one report for each input.

    :raises Outage: the brokers don't answer.
    """
    admin, plan = ClusterAdmin(connection), journal.plan
    since = {grown.topic: _since_the_fence(admin, grown.topic, journal) for grown in grown_by_key(plan)}
    return tuple(
        misrouted(
            grown,
            _places(connection, grown.topic, since[grown.topic]),
            acceptances.ranges(plan.fingerprint, grown.topic),
            present=len(since[grown.topic]),
        )
        for grown in grown_by_key(plan)
    )


def look_at_range(connection: KafkaConnection, journal: Journal, finding: OffsetRange) -> InputReport | None:
    """Check the offsets of a finding again; None if its input wasn't grown by key.

    :raises Outage: the brokers don't answer.
    """
    topic, partition, first, last = finding
    for grown in grown_by_key(journal.plan):
        if grown.topic == topic:
            since = _since_the_fence(ClusterAdmin(connection), topic, journal)
            begin, end = since.get(partition, (0, 0))
            begin, end = max(first, begin), min(last + 1, end)
            places = _places(connection, topic, {partition: (begin, end)} if begin < end else {})
            return misrouted(grown, places, present=len(since))
    return None


def _since_the_fence(admin: ClusterAdmin, topic: str, journal: Journal) -> dict[int, tuple[int, int]]:
    begins, ends = admin.begin_offsets([topic])[topic], admin.end_offsets([topic])[topic]
    fence = journal.green_start.get(topic, {})
    return {p: (max(fence.get(p, 0), begins[p]), end) for p, end in ends.items()}


def _places(connection: KafkaConnection, topic: str, ranges: dict[int, tuple[int, int]]) -> Iterator[Place]:
    # Records that retention deletes meanwhile can't be checked, neither now nor later.
    for message in read_ranges(connection, topic, ranges, may_be_deleted=True):
        key = message.key()
        yield Place(message.partition() or 0, message.offset() or 0, key.encode() if isinstance(key, str) else key)
