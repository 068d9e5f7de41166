"""How topics are written, as their batches tell."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from kafka.structs import TopicPartition

from kafka_rescale.core.cluster import Habit
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.formats.record_batches import Batch, batches_of, habit_of
from kafka_rescale.kafka.admin.group_members import asked
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.log_batches import fetch_answer

PARTITIONS = 3
NEWEST_RECORDS = 200
BYTES = 64 * 1024
ANSWERS = 3
SECONDS_EACH = 5.0
SECONDS = 20.0


def habits_of(
    connection: KafkaConnection,
    begins: PartitionOffsets,
    ends: PartitionOffsets,
    copied: PartitionOffsets | None = None,
    seconds: float = SECONDS,
) -> dict[str, Habit]:
    """Return how each topic is written, by the oldest and newest batches of a few partitions.

    :param begins: log start offsets of the topics to look at.
    :param ends: their ends (exclusive).
    :param copied: ends (exclusive) of what an expansion has copied to these topics.
    :param seconds: how long to look in all; topics not seen by then have no habits.
    :raises InvalidInput: reading a topic is not allowed.
    """
    filled = {t: [p for p, end in sorted(of.items()) if end > begins[t].get(p, 0)] for t, of in ends.items()}
    deadline, own = time.monotonic() + seconds, copied or {}

    def usual(client: Any) -> dict[str, Habit]:
        return {
            topic: habit_of(
                (batch, own.get(topic, {}).get(partition, 0))
                for partition in partitions[:PARTITIONS]
                for offset in _offsets(begins[topic].get(partition, 0), ends[topic][partition])
                if time.monotonic() < deadline
                for batch in _batches(client, TopicPartition(topic, partition), offset)
            )
            for topic, partitions in filled.items()
        }

    if not any(filled.values()):
        return {}
    return asked(connection, "how topics are written", usual)


def _offsets(begin: int, end: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys((begin, max(begin, end - NEWEST_RECORDS))))


def _batches(client: Any, at: TopicPartition, offset: int) -> Iterator[Batch]:
    """Yield a few batches, at least one with records: before a large batch, an answer may have only a marker."""
    with suppress(Outage):
        for _ in range(ANSWERS):
            found = list(batches_of(fetch_answer(client, at, offset, BYTES, SECONDS_EACH)))
            yield from found
            if not found or not all(batch.is_control for batch in found):
                return
            offset = found[-1].last + 1
