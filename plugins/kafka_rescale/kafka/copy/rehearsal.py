"""Could the records of a partition be moved? Each is routed as in a move, but not written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from confluent_kafka import Message

from kafka_rescale.core.control.progress import Extremes, PartitionProgress
from kafka_rescale.core.formats.record_batches import size_of
from kafka_rescale.core.formats.record_limits import RecordLimits
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.router import NOWHERE, Router
from kafka_rescale.kafka.copy.units import CopyUnit
from kafka_rescale.kafka.copy.writer import latest_timestamp, place_of, wrong_timestamp
from kafka_rescale.kafka.reading.range_reader import read_ranges

BATCH_RECORDS = 2_000


def record_limits(admin: ClusterAdmin, moves: Sequence[Move], within_ms: int) -> dict[str, RecordLimits]:
    """Return the brokers' limits for records that are written soon to the targets of some moves, by topic.

    :param within_ms: how long it takes at most until they are written.
    """
    found = admin.existing_topics(move.target for move in moves)
    return {name: RecordLimits.of(topic, now_ms(), within_ms) for name, topic in found.items()}


def rehearse_unit(
    connection: KafkaConnection,
    unit: CopyUnit,
    start: int,
    end: int,
    limits: RecordLimits,
    go_on: Callable[[], object] = lambda: None,
) -> PartitionProgress:
    """Route the records of a range, and return how many would be written.

    Changelog records that stay are checked as well: a record that Spark can't read would hinder their proof.

    :param start: inclusive; records that are deleted before they are read don't have to be moved.
    :param end: exclusive.
    :param limits: limits of the topic that the records would be written to.
    :param go_on: called for each batch; it raises to end this.
    :raises UnsafeState: a record can't be moved.
    """
    router, (topic, partition), moving, size = Router(unit.move), unit.source, 0, 0
    latest = latest_timestamp(unit)
    extremes: Extremes | None = None
    records = read_ranges(connection, topic, {partition: (start, end)}, may_be_deleted=True)
    while batch := list(islice(records, BATCH_RECORDS)):
        go_on()
        targets = router.targets([message.key() for message in batch], partition)
        if (late := next((m for m in batch if m.timestamp()[1] > latest), None)) is not None:
            raise wrong_timestamp(unit, late)
        written = [message for message, target in zip(batch, targets, strict=True) if target != NOWHERE]
        if accepted := [_accepted(unit, message, limits) for message in written]:
            times, sizes = zip(*accepted, strict=True)
            found = Extremes(oldest_ms=min(times), newest_ms=max(times), bytes=max(sizes))
            extremes = extremes | found if extremes else found
        moving += len(written)
        size += sum(len(message) + len(message.key() or b"") for message in written)
    return PartitionProgress(
        topic=topic,
        partition=partition,
        position=end,
        end=end,
        records=moving,
        bytes=size,
        begin=start,
        extremes=extremes,
    )


def _accepted(unit: CopyUnit, message: Message, limits: RecordLimits) -> tuple[int, int]:
    """Return the timestamp of a record, and its size in a batch of its own.

    :raises UnsafeState: the brokers would not accept it.
    """
    timestamp = message.timestamp()[1]
    if timestamp <= 0:
        raise wrong_timestamp(unit, message)
    key: Any = message.key()
    value: Any = message.value()
    headers: Any = message.headers()
    size = size_of(key, value, headers or ())
    limits.check(place_of(unit, message), timestamp, size)
    return timestamp, size
