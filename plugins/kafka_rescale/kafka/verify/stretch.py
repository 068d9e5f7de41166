"""Reading what lies between two fences, as the oracles of ``core.verify.delta`` see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from threading import Event
from typing import NamedTuple

from confluent_kafka import Message

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.formats.changelog_formats import format_of
from kafka_rescale.core.formats.sequences import encoded_headers
from kafka_rescale.core.partitioning.partitioners import homes_of_known, partitioner_named
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.core.verify.delta import MALFORMED, Seen
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.copy.router import NOWHERE, Headers, Router, kept_headers
from kafka_rescale.kafka.reading.range_reader import read_ranges

BATCH = 2_000
"""Records of one partition whose targets are computed at a time."""
HELD = 100_000
"""Records that wait for others of their partition, over all partitions."""

Ranges = dict[int, tuple[int, float]]


class Wanted(NamedTuple):
    """Which records of a topic are looked at.

    :param has: whether a key is wanted.
    :param read: counts all records by partition, wanted or not.
    """

    has: Callable[[bytes], bool]
    read: Counter[int]


class Abandoned(Exception):
    """The comparison was told to end."""


@dataclass(frozen=True)
class Stretch:
    """What lies between two fences.

    :param before: the fence behind which it begins.
    :param now: the fence at which it ends.
    :param is_last: whether blue was stopped at ``now``.
    :param over: when this is set, the comparison ends.
    """

    before: Fences
    now: Fences
    is_last: bool = False
    over: Event = field(default_factory=Event)

    def of_blue(self, topic: str) -> Ranges:
        """Return the range of every partition of one of blue's topics, without what is not copied yet."""
        return _ranges(topic, self.before.begun, self.now.blue_ends)

    def of_green(self, topic: str) -> Ranges:
        """Return the range of every partition of one of green's topics."""
        return _ranges(topic, self.before.green_begun, self.now.green_ends)


def read_blue(
    connection: KafkaConnection, move: Move, stretch: Stretch, wanted: Wanted, *, expires: bool
) -> Iterator[Seen]:
    """Yield what the copy has to write. It does not write what an earlier growth in place has left behind.

    :param expires: whether retention may delete records meanwhile.
    :raises Abandoned: the comparison was told to end.
    :raises UnsafeState: a key lies where it does not belong.
    """
    router = Router(move)
    ranges = stretch.of_blue(move.source)
    for partition, batch in _batches(connection, move.source, ranges, wanted, stretch.over, expires):
        values = router.values([m.value() for m in batch], partition)
        homes = router.targets([_key(m) for m in batch], partition)
        for message, value, home in zip(batch, values, homes, strict=True):
            if home != NOWHERE:
                yield _seen(message, home, value, kept_headers(message.headers()))


def read_green(
    connection: KafkaConnection, move: Move, stretch: Stretch, wanted: Wanted, *, expires: bool
) -> Iterator[Seen]:
    """Yield what the copy has written.

    :param expires: whether retention may delete records meanwhile.
    :raises Abandoned: the comparison was told to end.
    """
    layout = format_of(move.store_type, move.partitioning_key).layout
    partitioner = partitioner_named(move.partitioner, move.key_topic)
    ranges = stretch.of_green(move.target)
    for _, batch in _batches(connection, move.target, ranges, wanted, stretch.over, expires):
        keys = layout.extract([_key(m) for m in batch])
        homes = homes_of_known(partitioner, keys, move.target_partitions, MALFORMED)
        for message, home in zip(batch, homes, strict=True):
            yield _seen(message, home, message.value(), message.headers())


def _batches(
    connection: KafkaConnection, topic: str, ranges: Ranges, wanted: Wanted, over: Event, expires: bool
) -> Iterator[tuple[int, list[Message]]]:
    """Yield records of one partition at a time, each partition in the order of its offsets."""
    batches: dict[int, list[Message]] = {}
    waiting = 0
    for message in read_ranges(connection, topic, ranges, may_be_deleted=expires):
        if over.is_set():
            raise Abandoned
        partition = message.partition() or 0
        wanted.read[partition] += 1
        if not wanted.has(_key(message)):
            continue
        batches.setdefault(partition, []).append(message)
        waiting += 1
        if len(batches[partition]) == BATCH:
            waiting -= BATCH
            yield partition, batches.pop(partition)
        elif waiting == HELD:
            yield from batches.items()
            batches, waiting = {}, 0
    yield from batches.items()


def _ranges(topic: str, begins: PartitionOffsets, ends: PartitionOffsets) -> Ranges:
    return {p: (begins[topic][p], end) for p, end in ends[topic].items()}


def _key(message: Message) -> bytes:
    key = message.key()
    return key if isinstance(key, bytes) else (key or "").encode()


def _seen(message: Message, home: int, value: object, headers: Headers | None) -> Seen:
    return Seen(
        key=_key(message),
        partition=message.partition() or 0,
        home=home,
        offset=message.offset() or 0,
        timestamp_ms=message.timestamp()[1],
        value=blake2b(value, digest_size=16).digest() if isinstance(value, bytes) else None,
        headers=blake2b(encoded_headers(headers), digest_size=8).digest() if headers else b"",
    )
