"""Could the records of a partition be moved? Each is routed as a move would route it, and none is written."""

from __future__ import annotations

from itertools import islice

from kafka_rescale.core.control_records import PartitionProgress
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.copy_records import NOWHERE, Router
from kafka_rescale.kafka.copy_units import CopyUnit
from kafka_rescale.kafka.copy_writer import unwritable_timestamp
from kafka_rescale.kafka.range_reader import read_ranges

BATCH_RECORDS = 2_000


def rehearse_unit(connection: KafkaConnection, unit: CopyUnit, start: int, end: int) -> PartitionProgress:
    """Route the records of a range, and return how many would be written.

    :param start: inclusive; what is deleted before it is read need not be moved either.
    :param end: exclusive.
    :raises UnsafeState: a record that could not be moved.
    """
    router, (topic, partition), moving, size = Router(unit.move), unit.source, 0, 0
    records = read_ranges(connection, topic, {partition: (start, end)}, may_be_deleted=True)
    while batch := list(islice(records, BATCH_RECORDS)):
        targets = router.targets([message.key() for message in batch], partition)
        written = [message for message, target in zip(batch, targets, strict=True) if target != NOWHERE]
        for message in written:
            if not message.timestamp()[1]:
                raise unwritable_timestamp(unit, message)
        moving += len(written)
        size += sum(len(message) + len(message.key() or b"") for message in written)
    return PartitionProgress(topic=topic, partition=partition, position=end, end=end, records=moving, bytes=size)
