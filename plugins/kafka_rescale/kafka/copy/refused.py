"""Which record of a copy have the brokers refused, because of which config? Their answers tell neither."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from confluent_kafka import Message

from kafka_rescale.core.errors import Finding, Outage, RescaleError, UnsafeState
from kafka_rescale.core.formats.record_batches import size_of
from kafka_rescale.core.formats.record_limits import RecordLimits
from kafka_rescale.core.plan.raised_limits import raised_until
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.failures import is_about_size
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.router import NOWHERE, Router
from kafka_rescale.kafka.copy.units import CopyUnit
from kafka_rescale.kafka.copy.writer import place_of
from kafka_rescale.kafka.reading.range_reader import read_ranges


def explained(
    connection: KafkaConnection, unit: CopyUnit, reason: RescaleError, start: int, end: int
) -> RescaleError:
    """Return the error about the record that made brokers refuse a transaction; else the reason itself.

    :param reason: the brokers' answer to the transaction.
    :param start: offset of the transaction's first record.
    :param end: end of the transaction's records, exclusive.
    """
    if not isinstance(reason, UnsafeState):
        return reason
    with suppress(Outage):
        if found := _refused(connection, unit, start, end, about_size=is_about_size(reason)):
            return UnsafeState.of(found)
    return reason


def _refused(
    connection: KafkaConnection, unit: CopyUnit, start: int, end: int, *, about_size: bool
) -> Finding | None:
    """Return the largest record that is too large, or the first record that the brokers refuse for another reason.

    If several records are too large without compression, the brokers may have accepted the smaller ones.
    """
    described = ClusterAdmin(connection).describe_topics([unit.move.target])
    if (target := described.get(unit.move.target)) is None:
        return None
    limits, router, largest = RecordLimits.of(target, now_ms(), 0), Router(unit.move, unit.earlier), 0
    worst: Finding | None = None
    for message in read_ranges(connection, unit.move.source, {unit.partition: (start, end)}, may_be_deleted=True):
        size = _size(message)
        if (size > limits.batch_bytes) != about_size or size <= largest:
            continue
        if router.targets([message.key()], unit.partition)[0] == NOWHERE:
            continue
        finding = limits.finding(
            place_of(unit, message),
            message.timestamp()[1],
            size,
            raised_until(unit.move),
            has_key=message.key() is not None,
        )
        if finding is not None and not about_size:
            return finding
        if finding is not None:
            worst, largest = finding, size
    return worst


def _size(message: Message) -> int:
    key: Any = message.key()
    value: Any = message.value()
    headers: Any = message.headers()
    return size_of(key, value, headers or ())
