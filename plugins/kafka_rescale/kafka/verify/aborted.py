"""Reading green's aborted transactions: the headers of all batches, and the records only where it has aborted."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from hashlib import blake2b
from typing import Any

import kafka
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import RescaleError, UnsafeState
from kafka_rescale.core.verify.aborted import AbortedReport
from kafka_rescale.core.verify.transactions import OPEN, Transactions, Written, aborted_report
from kafka_rescale.kafka.admin.group_members import asked
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.log_batches import batches_between
from kafka_rescale.kafka.reading.range_reader import read_ranges

Logs = Mapping[TopicPartition, Transactions]


def read_transactions(
    connection: KafkaConnection, logs: Logs, begins: PartitionOffsets, ends: PartitionOffsets, *, seconds: float
) -> tuple[str, ...]:
    """Read the batches of logs from their positions on.

    :param begins: log start offsets. Retention and Kafka Streams' purges may have passed a position.
    :param ends: their ends (exclusive), as a ``read_uncommitted`` reader sees them.
    :param seconds: how long to read.
    :returns: the partitions that were not read to their ends.
    :raises Outage: a leader doesn't answer.
    :raises InvalidInput: reading a topic is not allowed.
    """
    deadline = time.monotonic() + seconds

    def read(client: Any) -> tuple[str, ...]:
        unread: list[str] = []
        for (topic, partition), log in logs.items():
            end = ends.get(topic, {}).get(partition, 0)
            start = max(log.position, begins.get(topic, {}).get(partition, 0))
            if start < end and not _read(
                client, kafka.TopicPartition(topic, partition), log, start, end, deadline
            ):
                unread.append(f"{topic}-{partition}")
        return tuple(unread)

    return asked(connection, "the transactions of the new generation", read)


def _read(client: Any, at: Any, log: Transactions, start: int, end: int, deadline: float) -> bool:
    """Read the batches of a partition, and return whether this came to the end before the deadline."""
    if time.monotonic() > deadline:
        return False
    try:
        for batch in batches_between(client, at, start, end):
            log.take(batch)
            if time.monotonic() > deadline:
                break
    except UnsafeState:
        # Batches of an older format have no transactions.
        log.position = end
    # A purge may have passed the start meanwhile: then nothing was read.
    return log.position >= end


def aborted_reports(
    connection: KafkaConnection,
    application_id: str,
    logs: Logs,
    judged: PartitionOffsets,
    changelogs: Collection[str],
) -> tuple[AbortedReport, ...]:
    """Return the reports of the topics in which an application has aborted records.

    :param application_id: its ``application.id``.
    :param changelogs: those of the topics that are its changelogs.
    :param judged: see ``aborted_report``, by topic.
    :raises ClusterOutage: the brokers don't answer.
    """
    by_topic: dict[str, dict[int, Transactions]] = {}
    for (topic, partition), log in logs.items():
        by_topic.setdefault(topic, {})[partition] = log
    others = _others(connection, application_id, logs)
    reports = (
        aborted_report(
            topic,
            of,
            _written(connection, topic, of),
            judged.get(topic, {}),
            others,
            is_changelog=topic in changelogs,
        )
        for topic, of in by_topic.items()
        if any(log.aborted for log in of.values())
    )
    return tuple(each for each in reports if each.records)


def _others(connection: KafkaConnection, application_id: str, logs: Logs) -> frozenset[int]:
    """Return those producers of aborted transactions that are known to belong to somebody else.

    Kafka Streams' transactional ids begin with the ``application.id``. Brokers tell only those that the asker may
    describe, and none before Kafka 3.0 (KIP-664). A producer that nobody names may be the application's.
    """
    ids = sorted({each.producer for log in logs.values() for each in log.aborted})

    def named(client: Any) -> frozenset[int]:
        listed = client.list_transactions(producer_id_filters=ids)
        found = [each for some in listed.values() for each in some]
        return frozenset(e.producer_id for e in found if not e.transactional_id.startswith(f"{application_id}-"))

    try:
        return asked(connection, "whose transactions were aborted", named) if ids else frozenset()
    except RescaleError:
        return frozenset()


def _written(connection: KafkaConnection, topic: str, logs: Mapping[int, Transactions]) -> Iterator[Written]:
    """Yield the aborted records and all that may answer them, up to where the batches were read.

    A record with a key is written again in its partition, one without a key in any.
    """
    firsts = {p: first for p, log in logs.items() if (first := log.first_aborted) is not None}
    begins = {p: log.start for p, log in logs.items()} if _has_keyless(connection, topic, logs, firsts) else firsts
    ranges = {p: (begin, logs[p].position) for p, begin in begins.items()}
    for message in read_ranges(connection, topic, ranges, may_be_deleted=True, committed=False):
        key, value = message.key(), message.value()
        kind, timestamp = message.timestamp()
        yield Written(
            message.partition() or 0,
            message.offset() or 0,
            timestamp,
            key.encode() if isinstance(key, str) else key,
            b"" if value is None else blake2b(value if isinstance(value, bytes) else value.encode()).digest(),
            kind == TIMESTAMP_LOG_APPEND_TIME,
        )


def _has_keyless(
    connection: KafkaConnection, topic: str, logs: Mapping[int, Transactions], firsts: Mapping[int, int]
) -> bool:
    """Whether an aborted record has no key."""
    uncommitted = {p: logs[p].uncommitted() for p in firsts}
    ranges = {p: (first, logs[p].last_aborted + 1) for p, first in firsts.items()}
    with closing(read_ranges(connection, topic, ranges, may_be_deleted=True, committed=False)) as records:
        for each in records:
            transaction = uncommitted[each.partition() or 0].transaction(each.offset() or 0)
            if each.key() is None and transaction not in {None, OPEN}:
                return True
    return False
