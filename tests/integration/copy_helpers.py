"""Helpers for tests of the copy: topics with blue's state, and an oracle that shares no code with the copy."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan, Stage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.transactions import wait_until_complete
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.copy.units import CopyUnit
from kafka_rescale.kafka.reading.committed import copy_consumer
from kafka_rescale.kafka.writing.settings import producer_settings

SUFFIXES = {"window": 12, "timestamped-window": 12, "session": 16}
T0 = 1_700_000_000_000


@dataclass(frozen=True)
class Record:
    key: bytes | None
    value: bytes | None
    timestamp: int = T0
    headers: tuple[tuple[str, bytes | None], ...] = ()


def records(count: int, version: int = 0, size: int = 10) -> list[Record]:
    """One record per key.

    :param version: tells the values of two calls apart.
    :param size: bytes of a value, plus a few.
    """
    return [Record(b"key-%d" % i, b"%d-%d" % (version, i) + b"x" * size) for i in range(count)]


def java_murmur2(data: bytes) -> int:
    """A literal transcription of Kafka's ``Utils.murmur2``, with unsigned instead of signed numbers."""
    h = (0x9747B28C ^ len(data)) & 0xFFFFFFFF
    for (word,) in struct.iter_unpack("<I", data[: len(data) // 4 * 4]):
        k = word * 0x5BD1E995 & 0xFFFFFFFF
        h = (h * 0x5BD1E995 & 0xFFFFFFFF) ^ ((k ^ k >> 24) * 0x5BD1E995 & 0xFFFFFFFF)
    rest = data[len(data) // 4 * 4 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * 0x5BD1E995 & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0x5BD1E995 & 0xFFFFFFFF
    return h ^ h >> 15


def expected_partition(store_type: str, key: bytes, count: int) -> int:
    suffix = SUFFIXES.get(store_type, 0)
    inner = key[: len(key) - suffix]
    return (java_murmur2(inner) & 0x7FFFFFFF) % count


def changelog(unique: str, store_type: str, source: int, target: int, store: str = "store") -> Move:
    """Return a move in which each producer writes two partitions, if the source has so many."""
    return Move(
        kind=MoveKind.CHANGELOG,
        source=f"{unique}-{store}-changelog",
        target=f"{unique}-g2-{store}-changelog",
        store=store,
        store_type=store_type,
        source_partitions=source,
        target_partitions=target,
        producers=(source + 1) // 2,
    )


def repartition(unique: str, source: int, target: int) -> Move:
    """Return the move of a repartition topic. Producers are as in ``changelog``."""
    return Move(
        kind=MoveKind.REPARTITION,
        source=f"{unique}-by-repartition",
        target=f"{unique}-g2-by-repartition",
        store="by-repartition",
        source_partitions=source,
        target_partitions=target,
        producers=(source + 1) // 2,
    )


def plan_of(unique: str, *moves: Move) -> Plan:
    stage = Stage(index=1, name="stage_1_subtopology_0", subtopology=0, moves=moves)
    partitions = moves[0].target_partitions
    return Plan(
        application=unique,
        generation=2,
        blue=unique,
        green=f"{unique}-g2",
        partitions=partitions,
        stages=(stage,),
        inputs=(),
    )


def create(connection: KafkaConnection, plan: Plan, configs: Mapping[str, str] | None = None) -> None:
    admin = ClusterAdmin(connection)
    for move in plan.moves:
        policy = "compact" if move.kind is MoveKind.CHANGELOG else "delete"
        # A marker has the time of its commit. After records of long ago it would close the segment for compaction.
        keep = {"min.compaction.lag.ms": str(2**63 - 1), "retention.ms": "-1"}
        wanted = {"cleanup.policy": policy, **keep, **(configs or {})}
        admin.ensure_topic(move.source, move.source_partitions, 1, wanted)
        admin.ensure_topic(move.target, move.target_partitions, 1, wanted)


def write(
    connection: KafkaConnection,
    move: Move,
    records: Iterable[Record],
    *,
    transactional_id: str = "",
    abort: bool = False,
) -> None:
    """Write to the source topic as the running generation does. With an id, write in one transaction."""
    settings = {"transactional.id": transactional_id} if transactional_id else {"enable.idempotence": True}
    producer = Producer(connection.client(**settings, **{"queue.buffering.max.messages": 1_000_000}))
    if transactional_id:
        producer.init_transactions(30)
        producer.begin_transaction()
    for record in records:
        partition = 0
        if record.key is not None:
            partition = expected_partition(move.store_type, record.key, move.source_partitions)
        producer.produce(
            move.source,
            record.value,
            record.key,
            partition,
            timestamp=record.timestamp,
            headers=list(record.headers),
        )
    if transactional_id and abort:
        producer.flush(30)
        producer.abort_transaction(30)
    elif transactional_id:
        producer.commit_transaction(30)
    assert producer.flush(30) == 0


def killed_within_commit(connection: KafkaConnection, plan: Plan, unit: CopyUnit, group: str) -> Producer:
    """A writer that has sent its position and never ended its transaction.

    Keep the object: when it is collected, it may end cleanly.
    """
    producer = Producer(connection.client(**producer_settings(unit.transactional_id(plan.green), 1_000_000)))
    consumer = copy_consumer(connection, group)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition(*unit.source, 1)], consumer.consumer_group_metadata(), 30)
    consumer.close()
    return producer


def read(connection: KafkaConnection, topic: str, *, committed: bool = True) -> dict[int, list[Record]]:
    """All records of a topic, per partition in the order of the log."""
    settings = {
        "group.id": "copy-test-reader",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "isolation.level": "read_committed" if committed else "read_uncommitted",
        "fetch.wait.max.ms": 10,
    }
    consumer = Consumer(connection.client(**settings))
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    if committed:
        wait_until_complete(ClusterAdmin(connection), [topic])
    found: dict[int, list[Record]] = {p: [] for p in partitions}
    consumer.assign(
        [
            TopicPartition(topic, p, consumer.get_watermark_offsets(TopicPartition(topic, p), 10)[0])
            for p in partitions
        ]
    )
    left = set(partitions)
    while left:
        for message in consumer.consume(10_000, 0.1):
            error = message.error()
            if error is None:
                headers = tuple(message.headers() or ())
                found[message.partition()].append(
                    Record(message.key(), message.value(), message.timestamp()[1], headers)
                )
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                left.discard(message.partition())
    consumer.close()
    return found


def per_key(log: Mapping[int, Iterable[Record]]) -> dict[bytes | None, list[Record]]:
    """The records of every key, in order. It fails if a key is in two partitions."""
    sequences: dict[bytes | None, list[Record]] = {}
    home: dict[bytes | None, int] = {}
    for partition, records in log.items():
        for record in records:
            assert home.setdefault(record.key, partition) == partition, f"{record.key!r} in two partitions"
            sequences.setdefault(record.key, []).append(record)
    return sequences


def assert_copied(connection: KafkaConnection, move: Move) -> None:
    """Assert that every record of the source arrived once, in order per key, in the partition of the rule."""
    source, target = read(connection, move.source), read(connection, move.target)
    expected, found = per_key(source), per_key(target)
    wrong = {key for key in {*expected, *found} if expected.get(key) != found.get(key)}
    assert not wrong, [(key, expected.get(key), found.get(key)) for key in sorted(wrong, key=repr)[:3]]
    for partition, records in target.items():
        for record in records:
            assert record.key is not None
            assert expected_partition(move.store_type, record.key, move.target_partitions) == partition


def ends_of(connection: KafkaConnection, *moves: Move) -> dict[tuple[str, int], int]:
    ends = ClusterAdmin(connection).end_offsets([m.source for m in moves])
    return {(topic, p): end for topic, by_partition in ends.items() for p, end in by_partition.items()}
