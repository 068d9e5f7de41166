"""Partitioners: from the bytes of a key to the number of its partition, for one key and for batches.

Sources: ``BuiltInPartitioner.partitionForKey`` (the Java clients' default), librdkafka's ``consistent_random``
(CRC32, the default of every librdkafka producer), KIP-287's linear hashing, KIP-878's static partitioners.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.partitioning.linear_hashing import LinearHashing, doubled
from kafka_rescale.core.partitioning.murmur2 import murmur2, murmur2_batch
from kafka_rescale.core.partitioning.user_function import NOT_THERE, Declared, NotThereYet, Static


class Partitioner(Protocol):
    """Maps a partitioning key to a partition of ``n``, for the records of one topic.

    ``is_modulo``: the partitioner takes a hash modulo ``n``. So with ``k * n`` partitions, each partition has keys
    of only one of the former partitions.
    ``is_static``: a key keeps its partition whatever ``n`` becomes (KIP-878).
    ``fewest_partitions``: the smallest ``n`` for which the partitioner is defined.
    """

    name: str
    is_modulo: bool
    is_static: bool
    fewest_partitions: int

    def partition(self, key: bytes, n: int) -> int:
        """Return the partition in ``[0, n)`` of one key."""
        ...

    def partition_batch(self, keys: Sequence[bytes], n: int) -> list[int]:
        """Return the partitions of many keys, in their order."""
        ...


class Modulo:
    """The base of partitioners that take a hash modulo ``n``."""

    is_modulo = True
    is_static = False
    fewest_partitions = 1


class Murmur2(Modulo):
    """The Java clients' and Kafka Streams' default for keyed records."""

    name = "murmur2"

    def partition(self, key: bytes, n: int) -> int:
        """Return ``toPositive(murmur2(key)) % n``. ``abs()`` would be wrong for negative hashes."""
        return (murmur2(key) & 0x7FFFFFFF) % n

    def partition_batch(self, keys: Sequence[bytes], n: int) -> list[int]:
        """Return the partitions of many keys, in their order."""
        partitions: list[int] = ((murmur2_batch(keys) & np.uint32(0x7FFFFFFF)) % np.uint32(n)).tolist()
        return partitions


class Crc32(Modulo):
    """librdkafka's ``consistent`` and ``consistent_random``, the default of every librdkafka producer.

    ``consistent_random`` may put an empty key into any partition: see ``is_spread``.
    """

    name = "crc32"

    def partition(self, key: bytes, n: int) -> int:
        """Return ``crc32(key) % n``."""
        return zlib.crc32(key) % n

    def partition_batch(self, keys: Sequence[bytes], n: int) -> list[int]:
        """Return the partitions of many keys, in their order."""
        return [zlib.crc32(key) % n for key in keys]


SPREADS_EMPTY_KEYS = "librdkafka's default partitioner spreads empty keys over all partitions"
"""The reason why an empty key may be anywhere, for messages."""
NO_STATE_OF_EMPTY_KEYS = (
    f"{SPREADS_EMPTY_KEYS}, so the application has state of the empty key in several of them, and no copy can put "
    "it together. First let the program drop such records, and delete what it has kept of them."
)
"""The remedy for state of such keys."""


def is_spread(partitioner: Partitioner, key: bytes) -> bool:
    """Return whether producers may have put a key into any partition, as they do with records without a key.

    librdkafka's ``consistent_random`` makes no difference between an empty key and none. murmur2's producers do.
    """
    return isinstance(partitioner, Crc32) and not key


def earlier_homes(partitioner: Partitioner, keys: Sequence[bytes], earlier: int) -> list[int]:
    """Return the partitions that keys have with a count that a topic had before it grew.

    A static partitioner may put a key into a partition that the topic did not have at this count. Then the result
    for this key is ``NOT_THERE``.

    :raises UnsafeState: a user's function fails, or gives an answer that is no partition with any count.
    """
    if not partitioner.is_static:
        return partitioner.partition_batch(keys, earlier)
    return [_earlier_home(partitioner, key, earlier) for key in keys]


def homes_of_known(partitioner: Partitioner, keys: Sequence[bytes | None], n: int, unknown: int) -> list[int]:
    """Return the partitions of the keys that are known, and ``unknown`` for each ``None``.

    A user's function is asked for no other bytes in its place: it may fail on what is no key of its topic.
    """
    known = [key for key in keys if key is not None]
    homes = iter(partitioner.partition_batch(known, n) if known else ())
    return [unknown if key is None else next(homes) for key in keys]


def _earlier_home(partitioner: Partitioner, key: bytes, earlier: int) -> int:
    try:
        return partitioner.partition(key, earlier)
    except NotThereYet:
        return NOT_THERE


PARTITIONERS: dict[str, Partitioner] = {p.name: p for p in (Murmur2(), Crc32())}
"""The partitioners that need only their name."""


def known_partitioners(partitions: int) -> Iterator[Partitioner]:
    """Yield every partitioner that a topic of this many partitions could have, except a user's own function.

    Two initial counts place keys alike if one is the other times a power of two. If the topic's own count is such
    a multiple of an initial count, linear hashing places keys as murmur2 does.
    """
    yield from PARTITIONERS.values()
    seen = {partitions}
    for initial in range(partitions - 1, 0, -1):
        if (whole := doubled(initial, partitions)) not in seen:
            seen.add(whole)
            yield LinearHashing(initial)


def partitioner_named(name: str, topic: str = "") -> Partitioner:
    """Return the partitioner that an application file declares.

    :param name: ``murmur2``, ``crc32``, ``linear-hashing:<initial count>``, ``module:function`` (with topic, key
        and count) or ``static:module:function`` (KIP-878).
    :param topic: the name that a user's function gets: an input's name, or that of a repartition topic without the
        application id.
    :raises InvalidInput: there is no such partitioner, or the function can't be imported.
    """
    kind, _, rest = name.partition(":")
    if name in PARTITIONERS:
        return PARTITIONERS[name]
    if kind == "linear-hashing" and rest.isdecimal() and int(rest) > 0:
        return LinearHashing(int(rest))
    if kind == "static" and ":" in rest:
        return Static.imported(rest, topic)
    if rest and kind not in {"static", "linear-hashing"}:
        return Declared.imported(name, topic)
    raise InvalidInput(
        "partitioner",
        found=repr(name),
        expected=f"one of {', '.join(sorted(PARTITIONERS))}, linear-hashing:<initial count>, module:function, "
        "static:module:function",
        remedy="Java producers and Kafka Streams use murmur2, as librdkafka does with partitioner=murmur2 or "
        "murmur2_random; its default, consistent_random, is crc32.",
    )


def gets_topic(name: str) -> bool:
    """Return whether a declared partitioner gets the topic's name: a function of the user may place keys by it.

    :raises InvalidInput: there is no such partitioner, or the function can't be imported.
    """
    return isinstance(partitioner_named(name), Declared)
