"""Small changelogs with a known history, written record by record to known partitions, without the copy loop."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_rescale.core.formats.changelog_formats import format_of
from kafka_rescale.core.formats.key_layouts import Trimmed
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.verify.pairs import ComparedLog
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.transactions import wait_until_complete
from kafka_rescale.kafka.client.connection import KafkaConnection

Headers = tuple[tuple[str, bytes | None], ...]
KEY_TOPIC = "orders"
"""The topic name that a user's partitioner is asked with."""

POSITION: Headers = (("v", b"\x00"), ("c", b"position"))
"""The headers that Kafka Streams adds to records when consistency vectors are on. A copy leaves them out."""


@dataclass(frozen=True)
class Record:
    """One changelog record; ``timestamp`` in ms since the epoch."""

    key: bytes
    value: bytes | None
    timestamp: int
    headers: Headers = ()


Placed = tuple[int, Record]
"""A record and its partition."""


def history(store_type: str, since: int, keys: int = 24) -> list[Record]:
    """Return three rounds over all keys: values, then updates, and finally tombstones for every fourth key.

    Every third key has headers, every fifth is written with a position, every eighth is alive again in the end.

    :param since: timestamp of the first record, ms.
    """
    names = [changelog_key(store_type, n) for n in range(keys)]
    records: list[Record] = []
    for round_number in range(3):
        for n, key in enumerate(names):
            deleted = round_number == 2 and n % 4 == 0
            text = f"value {n} of round {round_number}".encode()
            value = None if deleted else changelog_value(store_type, n, text)
            headers: Headers = (("trace", b"%d" % n), ("empty", None)) if n % 3 == 0 else ()
            headers += POSITION if n % 5 == 0 else ()
            records.append(Record(key, value, since + len(records), headers))
    revived = [
        Record(key, changelog_value(store_type, n, b"revived"), since + len(records))
        for n, key in enumerate(names)
        if n % 8 == 0
    ]
    return records + revived


def changelog_key(store_type: str, number: int) -> bytes:
    """Return a key as the store type logs it: a name, and around it bytes that do not affect the partition."""
    name, layout = f"key-{number:03d}".encode(), format_of(store_type).layout
    if isinstance(layout, Trimmed):
        around = number * 7919
        prefix, suffix = (around.to_bytes(n) if n else b"" for n in (layout.prefix, layout.suffix))
        return prefix + name + suffix
    return len(name).to_bytes(4) + name + primary_key(number)


def primary_key(number: int) -> bytes:
    """Return the left row's key of a foreign-key subscription."""
    return f"left-{number:03d}".encode()


def changelog_value(store_type: str, number: int, text: bytes) -> bytes:
    """Return a value as the store type logs it. A subscription names partition 0 until it is ``placed``.

    Every fifth subscription has version 0, which names no partition.
    """
    if store_type != "foreign-key-subscription":
        return text
    if number % 5 == 0:
        return b"\x00\x03" + hashlib.md5(text).digest() + primary_key(number)
    return b"\x01\x03" + hashlib.md5(text).digest() + primary_key(number) + bytes(4)


def placed(
    records: Iterable[Record],
    store_type: str,
    partitions: int,
    partitioner: str = "murmur2",
    left: str = "murmur2",
) -> list[Placed]:
    """Return each record with the partition of its partitioning key.

    A subscription also names the partition of its left row. The left table has the same number of partitions.

    :param left: the partitioner of the left table.
    """
    of, partition = format_of(store_type).partitioning_key, partitioner_named(partitioner, KEY_TOPIC).partition
    if store_type == "foreign-key-subscription":
        records = [replace(r, value=_named(r.value, partitions, left)) for r in records]
    return [(partition(of(r.key), partitions), r) for r in records]


def _named(value: bytes | None, partitions: int, left: str) -> bytes | None:
    if not value or value[0] == 0:
        return value
    return value[:-4] + partitioner_named(left, KEY_TOPIC).partition(value[18:-4], partitions).to_bytes(4)


def copied(records: Iterable[Record]) -> list[Record]:
    """Return what a correct copy writes: everything except the position headers."""
    return [replace(r, headers=tuple(h for h in r.headers if h not in POSITION)) for r in records]


def write_log(
    client: Mapping[str, str],
    topic: str,
    partitions: int,
    records: Iterable[Placed],
    *,
    transactional: bool = False,
    config: Mapping[str, str] | None = None,
) -> ComparedLog:
    """Create a topic, write records in order, and return the topic's whole range.

    :param transactional: write in one transaction, after another transaction that was aborted.
    """
    admin = AdminClient(dict(client))
    new = NewTopic(topic, partitions, config=dict(config or {"cleanup.policy": "compact"}))
    admin.create_topics([new])[topic].result(30)
    if transactional:
        _write_in_transactions(client, topic, list(records))
        # The broker answers the commit before its markers are in every partition.
        wait_until_complete(ClusterAdmin(KafkaConnection(dict(client))), [topic])
    else:
        append(client, topic, records)
    return log_range(client, topic)


def append(client: Mapping[str, str], topic: str, records: Iterable[Placed]) -> None:
    """Write records in order. When it returns, the brokers have them."""
    producer = Producer({**client, "enable.idempotence": True, "linger.ms": 0})
    _produce(producer, topic, records)
    assert producer.flush(30) == 0


def log_range(client: Mapping[str, str], topic: str) -> ComparedLog:
    """Return the range of a topic from its log starts to its ends."""
    admin = ClusterAdmin(KafkaConnection(dict(client)))
    return ComparedLog.of(topic, admin.begin_offsets([topic])[topic], admin.end_offsets([topic])[topic])


def trim(client: Mapping[str, str], topic: str, partition: int, before: int) -> None:
    """Delete the beginning of a partition, as retention would."""
    admin = AdminClient(dict(client))
    for future in admin.delete_records([TopicPartition(topic, partition, before)]).values():
        future.result(30)


def record_count(client: Mapping[str, str], log: ComparedLog) -> int:
    """Return how many committed records a log still holds."""
    consumer = Consumer(
        {**client, "group.id": "unused", "enable.partition.eof": True, "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(log.topic, p, log.begins[p]) for p in range(log.partitions)])
    reading, count = set(range(log.partitions)), 0
    while reading:
        for message in consumer.consume(1000, timeout=0.2):
            if message.error() is None:
                count += 1
            else:
                reading.discard(message.partition())
    consumer.close()
    return count


def _write_in_transactions(client: Mapping[str, str], topic: str, records: Sequence[Placed]) -> None:
    producer = Producer({**client, "transactional.id": f"writer-of-{topic}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    _produce(producer, topic, [(p, replace(r, value=b"aborted")) for p, r in records])
    producer.flush(30)
    producer.abort_transaction(30)
    producer.begin_transaction()
    _produce(producer, topic, records)
    producer.commit_transaction(30)


def _produce(producer: Producer, topic: str, records: Iterable[Placed]) -> None:
    for partition, r in records:
        producer.produce(topic, r.value, r.key, partition, timestamp=r.timestamp, headers=list(r.headers))
        producer.poll(0)
