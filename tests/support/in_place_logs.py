"""Logs of an application that grows in place: written as it writes them, and checked after the growth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from confluent_kafka import Producer
from kafka_rescale.core.control.journal import Captured
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from tests.integration.copy_helpers import T0, Record, plan_of, read

Log = dict[int, list[Record]]


def changelog(unique: str, before: int, after: int, **changes: object) -> Move:
    """Return the growth of a store's changelog."""
    fields: dict[str, object] = {
        "kind": MoveKind.CHANGELOG,
        "source": f"{unique}-store-changelog",
        "target": f"{unique}-store-changelog",
        "store": "store",
        "store_type": "key-value",
        "source_partitions": before,
        "target_partitions": after,
    }
    return Move.model_validate({**fields, **changes})


def repartition(unique: str, before: int, after: int) -> Move:
    """Return the growth of a repartition topic."""
    name = f"{unique}-by-repartition"
    changes = {"kind": MoveKind.REPARTITION, "source": name, "target": name, "store": "by", "store_type": ""}
    return changelog(unique, before, after, **changes)


def in_place(unique: str, *moves: Move) -> Plan:
    """Return the plan of a growth in one stage."""
    return plan_of(unique, *moves).model_copy(update={"green": unique})


def history(count: int = 400) -> Iterator[Record]:
    """Yield updates of 60 keys. Every seventh record deletes its key."""
    for i in range(count):
        value = None if i % 7 == 3 else b"value-%d" % i
        yield Record(b"key-%d" % (i * 13 % 60), value, T0 + i, (("h", b"%d" % i),) if i % 3 else ())


def written(connection: KafkaConnection, move: Move, records: Iterable[Record], **configs: str) -> Log:
    """Create the topic with its present count, write to it as the application does, and return its content."""
    policy = "compact" if move.kind is MoveKind.CHANGELOG else "delete"
    keep = {"cleanup.policy": policy, "min.compaction.lag.ms": str(2**63 - 1), "retention.ms": "-1", **configs}
    ClusterAdmin(connection).ensure_topic(move.source, move.source_partitions, 1, keep)
    append(connection, move, move.source_partitions, records)
    return read(connection, move.source)


def append(connection: KafkaConnection, move: Move, count: int, records: Iterable[Record]) -> None:
    """Append records as the application does while the topic has so many partitions."""
    producer, rule = Producer(connection.client()), partitioner_named(move.partitioner, move.key_topic)
    for r in records:
        partition = 0 if r.key is None else rule.partition(r.key, count)
        producer.produce(move.source, r.value, r.key, partition, timestamp=r.timestamp, headers=list(r.headers))
    assert producer.flush(30) == 0


def captured_of(connection: KafkaConnection, plan: Plan, starts: dict[int, int] | None = None) -> Captured:
    """Return what was captured when the application stopped: ends of changelogs, and unread repartition records.

    :param starts: its offsets in repartition topics, 0 by default.
    """
    ends = ClusterAdmin(connection).end_offsets([m.source for m in plan.moves])
    return Captured(
        changelog_ends={m.source: ends[m.source] for m in plan.changelogs},
        in_flight={
            m.source: {p: ((starts or {}).get(p, 0), end) for p, end in ends[m.source].items()}
            for m in plan.repartitions
        },
    )


def grown(connection: KafkaConnection, plan: Plan) -> None:
    """Grow every topic."""
    for move in plan.moves:
        ClusterAdmin(connection).grow_topic(move.source, move.target_partitions)


def moving(move: Move, log: Log) -> Log:
    """Return, per partition, the records whose keys belong elsewhere among the new partitions."""
    return {p: [r for r in records if home_of(move, r.key) != p] for p, records in log.items()}


def home_of(move: Move, key: bytes | None) -> int:
    """Return the new partition of a key."""
    return partitioner_named(move.partitioner, move.key_topic).partition(key or b"", move.target_partitions)


def live(log: Log) -> dict[bytes | None, set[int]]:
    """Return the partitions in which each key is live."""
    found: dict[bytes | None, set[int]] = {}
    for partition, records in log.items():
        for key, last in {r.key: r for r in records}.items():
            if last.value is not None:
                found.setdefault(key, set()).add(partition)
    return found


def assert_moved(move: Move, before: Log, after: Log) -> None:
    """Assert that the move was correct.

    Old records are untouched. After them come the records that move, once and in order, and tombstones for their
    keys in the old partitions. Each live key is live only in its new partition.
    """
    for partition, records in before.items():
        assert after[partition][: len(records)] == records
    appended = {p: records[len(before.get(p, [])) :] for p, records in after.items()}
    arrived = {p: [r for r in records if home_of(move, r.key) == p] for p, records in appended.items()}
    assert by_key(arrived) == by_key(moving(move, before))
    tombstones = {p: [r for r in records if home_of(move, r.key) != p] for p, records in appended.items()}
    assert {r.value for records in tombstones.values() for r in records} <= {None}
    assert live(moving(move, before)).keys() <= by_key(tombstones).keys() <= by_key(moving(move, before)).keys()
    assert live(after) == {key: {home_of(move, key)} for key in live(before)}


def by_key(log: Log) -> dict[bytes | None, list[Record]]:
    """Return the records of every key over all partitions."""
    found: dict[bytes | None, list[Record]] = {}
    for records in log.values():
        for r in records:
            found.setdefault(r.key, []).append(r)
    return found
