"""Brokers refuse to take a record again: one message names the record, its value, the config and the remedy."""

from __future__ import annotations

import glob
import json
import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.errors import PreflightRefused, UnsafeState
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan, Stage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.bridging import prepare
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.reading.habits import habits_of

from testbed.broker import EmbeddedBroker
from tests.integration import copy_helpers
from tests.integration.copy_helpers import Record, expected_partition, plan_of, read
from tests.support import in_place_logs
from tests.support.small_application import KEYS, START_MS
from tests.support.small_cluster import make, run_preflight

pytestmark = pytest.mark.integration

Client = Mapping[str, str]
DAY = 86_400_000
UNLIMITED = str(2**63 - 1)
ANYTHING = {
    "message.timestamp.before.max.ms": UNLIMITED,
    "message.timestamp.after.max.ms": UNLIMITED,
    "max.message.bytes": "20000000",
    "cleanup.policy": "delete",
    "retention.ms": "-1",
}
ZEROS = bytes(3_000_000)


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


def input_move(unique: str, source: int, target: int) -> Move:
    """The move of a bridge."""
    return Move(
        kind=MoveKind.INPUT,
        source=f"{unique}-orders",
        target=f"{unique}-orders-p{target}",
        store=f"{unique}-orders",
        source_partitions=source,
        target_partitions=target,
    )


WAYS: dict[str, tuple[Callable[..., Move], str]] = {
    "blue_green": (
        partial(copy_helpers.changelog, store_type="key-value"),
        " until verify has passed; then trigger again.",
    ),
    "in_place": (in_place_logs.changelog, " until verify has passed; then trigger again."),
    "bridge": (input_move, " until the bridge has ended; its next run goes on from its last commit."),
}


@dataclass(frozen=True)
class Case:
    """A record that the brokers have taken once, and the config by which they now refuse it."""

    bad: Callable[[int], Record]
    limit: dict[str, str]
    found: str
    expected: str
    remedy: str
    enough: str = UNLIMITED


CASES = {
    "too old": Case(
        lambda now: Record(b"bad", b"v", now - 3 * DAY),
        {"message.timestamp.before.max.ms": str(2 * DAY)},
        "timestamp {timestamp}, which brokers refuse when the record is written again",
        "one within message.timestamp.before.max.ms of {target}",
        f"Set message.timestamp.before.max.ms, and message.timestamp.difference.max.ms where the brokers know it, "
        f"to {UNLIMITED} on {{target}}",
    ),
    "too far ahead": Case(
        lambda now: Record(b"bad", b"v", now + 3 * DAY),
        {"message.timestamp.after.max.ms": "3600000"},
        "timestamp {timestamp}, which brokers refuse when the record is written again",
        "one within message.timestamp.after.max.ms of {target}",
        f"Set message.timestamp.after.max.ms, and message.timestamp.difference.max.ms where the brokers know it, "
        f"to {UNLIMITED} on {{target}}",
    ),
    "too large": Case(
        lambda now: Record(b"bad", ZEROS, now),
        {"max.message.bytes": "1048588"},
        "a record of 3000077 bytes without compression",
        "at most max.message.bytes of {target}, 1048588",
        "Set max.message.bytes=3000077 or more on {target}",
        "3000077",
    ),
    "too large for a segment": Case(
        lambda now: Record(b"bad", ZEROS, now),
        {"segment.bytes": "1048576"},
        "a record of 3000077 bytes without compression",
        "at most segment.bytes of {target}, 1048576",
        "Set segment.bytes=3000077 or more on {target}",
        "3000077",
    ),
}


def put(connection: KafkaConnection, move: Move, records: list[Record], **settings: Any) -> None:
    producer = Producer(connection.client(**{"message.max.bytes": 50_000_000, **settings}))
    for r in records:
        partition = expected_partition("", r.key or b"", move.source_partitions)
        producer.produce(move.source, r.value, r.key, partition, timestamp=r.timestamp)
    assert producer.flush(60) == 0


def copy(connection: KafkaConnection, plan: Plan, move: Move) -> None:
    """Do what a job of the copy, the move or the bridge does with its units."""
    group = plan.copy_group
    if move.kind is MoveKind.INPUT:
        group = plan.bridge_group
        prepare(connection, plan, Bridge(plan=plan.fingerprint))
    worker = CopyWorker(connection, plan, units_of([move]), group=group)
    ends = ClusterAdmin(connection).end_offsets([move.source])[move.source]
    try:
        worker.begin({unit.source: 0 for unit in units_of([move])})
        worker.run_to({(move.source, p): ends[p] for p in range(move.source_partitions)}, now_ms(), exactly=True)
    finally:
        worker.close()


def made(connection: KafkaConnection, move: Move, configs: dict[str, str] | None = None) -> Plan:
    admin = ClusterAdmin(connection)
    admin.ensure_topic(move.source, move.source_partitions, 1, configs or ANYTHING)
    if not move.is_in_place:
        admin.ensure_topic(move.target, move.target_partitions, 1, configs or ANYTHING)
    return planned(move)


def planned(move: Move) -> Plan:
    """A plan with one move."""
    plan = plan_of(move.source, move)
    if move.kind is not MoveKind.INPUT:
        return plan
    return plan.model_copy(update={"stages": (Stage(index=1, name="1", subtopology=0, bridges=(move,)),)})


# In `make test`, each case in one way, and each way in one case.
QUICK = {*(("blue_green", name) for name in CASES), ("in_place", "too old"), ("bridge", "too large")}


@pytest.mark.parametrize(
    ("name", "way"),
    [
        pytest.param(name, way, marks=[] if (way, name) in QUICK else [pytest.mark.slow])
        for name in CASES
        for way in WAYS
    ],
)
def test_one_message_names_the_record_and_the_remedy_and_with_it_the_copy_goes_on(
    connection: KafkaConnection, unique: str, way: str, name: str
) -> None:
    case, (new, until), now = CASES[name], WAYS[way], now_ms()
    move = new(unique, before=1, after=8) if way == "in_place" else new(unique, source=1, target=8)
    plan, bad = made(connection, move), case.bad(now)
    good = [Record(b"key-%d" % i, b"v", now) for i in range(40)]
    put(connection, move, [*good[:20], bad, *good[20:]])
    if move.is_in_place:
        ClusterAdmin(connection).grow_topics({move.source: 8})
    admin = ClusterAdmin(connection)
    admin.alter_configs(move.target, case.limit)
    with pytest.raises(UnsafeState) as refused:
        copy(connection, plan, move)
    names = {"target": move.target, "timestamp": bad.timestamp}
    error = refused.value
    assert error.what == f"topic {move.source} partition 0 offset 20", error
    assert error.found == case.found.format(**names)
    assert error.expected.startswith(case.expected.format(**names))
    source = "" if move.is_in_place else f" and on {move.source}"
    assert error.remedy == case.remedy.format(**names) + source + until
    admin.alter_configs(move.target, dict.fromkeys(case.limit, case.enough))
    copy(connection, plan, move)
    live = {r.key for records in read(connection, move.target).values() for r in records if r.value is not None}
    assert live == {bad.key, *(r.key for r in good)}


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_what_fits_compressed_only_is_copied_with_the_codec_of_its_source(
    connection: KafkaConnection, unique: str, codec: str
) -> None:
    move = copy_helpers.changelog(unique, "key-value", 3, 6)
    default = {"cleanup.policy": "delete", "retention.ms": "-1"}
    made(connection, move, default)
    put(connection, move, [Record(b"k%d" % i, ZEROS, now_ms()) for i in range(6)], **{"compression.type": codec})
    with pytest.raises(UnsafeState, match=rf"^topic {move.source} partition \d offset \d: found a record of 3000"):
        copy(connection, planned(move), move)
    admin = ClusterAdmin(connection)
    found = habits_of(connection, admin.begin_offsets([move.source]), admin.end_offsets([move.source]))
    assert found == {move.source: (codec, False)}
    compressed = move.model_copy(update={"compression": codec})
    copy(connection, planned(compressed), compressed)
    assert sum(map(len, read(connection, move.target).values())) == 6
    begins, ends = admin.begin_offsets([move.target]), admin.end_offsets([move.target])
    assert habits_of(connection, begins, ends) == {move.target: (codec, True)}
    assert habits_of(connection, begins, ends, ends) == {move.target: (codec, False)}, "the copy is no habit"


def test_a_copy_is_no_larger_than_its_source(
    broker: EmbeddedBroker, connection: KafkaConnection, unique: str
) -> None:
    chance, words = random.Random(7), [f"w{i:04}" for i in range(2000)]
    made_up = [
        Record(
            b"key-%d" % i, json.dumps({"id": i, "items": [chance.choice(words) for _ in range(60)]}).encode(), 1
        )
        for i in range(10_000)
    ]
    move = copy_helpers.changelog(unique, "key-value", 3, 6).model_copy(update={"compression": "zstd"})
    made(connection, move)
    put(connection, move, made_up, **{"compression.type": "zstd", "linger.ms": 50})
    copy(connection, planned(move), move)
    before, after = (size_on_disk(broker, topic) for topic in (move.source, move.target))
    assert after < 1.3 * before


def size_on_disk(broker: EmbeddedBroker, topic: str) -> int:
    files = glob.glob(f"{broker.directory}/**/{topic}-[0-9]*/*.log", recursive=True)
    assert files
    return sum(os.path.getsize(file) for file in map(Path, files))


def test_topics_without_compression_or_records_have_no_codec(connection: KafkaConnection, unique: str) -> None:
    move = copy_helpers.changelog(unique, "key-value", 2, 4)
    made(connection, move)
    put(connection, move, [Record(b"k%d" % i, b"v", now_ms()) for i in range(6)])
    admin, topics = ClusterAdmin(connection), [move.source, move.target]
    found = habits_of(connection, admin.begin_offsets(topics), admin.end_offsets(topics))
    assert found == dict.fromkeys(topics, ("", False))


def test_the_codec_of_the_connection_goes_first(connection: KafkaConnection, unique: str) -> None:
    declared = KafkaConnection({**connection.config, "compression.type": "lz4"})
    move = copy_helpers.changelog(unique, "key-value", 2, 4).model_copy(update={"compression": "gzip"})
    made(connection, move)
    put(connection, move, [Record(b"k%d" % i, b"v" * 1000, now_ms()) for i in range(6)])
    copy(declared, planned(move), move)
    admin = ClusterAdmin(connection)
    found = habits_of(connection, admin.begin_offsets([move.target]), admin.end_offsets([move.target]))
    assert found == {move.target: ("lz4", True)}


class TestPreflight:
    """If its samples show such a record, preflight already refuses."""

    @pytest.mark.parametrize("mode", ["blue_green", "in_place"])
    @pytest.mark.parametrize(
        ("limit", "timestamp", "size", "found"),
        [
            ("message.timestamp.before.max.ms", START_MS - 3 * DAY, 1, f"timestamp {START_MS - 3 * DAY}, which"),
            ("message.timestamp.after.max.ms", START_MS + 3 * DAY, 1, f"timestamp {START_MS + 3 * DAY}, which"),
            ("max.message.bytes", START_MS, 3000, "a record of 3080 bytes without compression"),
        ],
    )
    def test_a_sampled_record_that_would_be_refused(
        self,
        client: Client,
        tmp_path: Path,
        unique: str,
        mode: str,
        limit: str,
        timestamp: int,
        size: int,
        found: str,
    ) -> None:
        make(client, unique)
        topic, key = f"{unique}-totals-changelog", KEYS[0]
        producer = Producer(dict(client))
        partition = expected_partition("", key, 4)
        producer.produce(topic, bytes(size), key, partition, timestamp=timestamp)
        assert producer.flush(30) == 0
        offset = ClusterAdmin(KafkaConnection(client)).end_offsets([topic])[topic][partition] - 1
        ClusterAdmin(KafkaConnection(client)).alter_configs(topic, {limit: str(2 * DAY) if size == 1 else "2000"})
        with pytest.raises(PreflightRefused) as refused:
            run_preflight(client, tmp_path, unique, mode=mode)
        [finding] = refused.value.findings
        assert finding.what == f"topic '{topic}' partition {partition} offset {offset}"
        assert finding.found.startswith(found)
        assert f"{limit} of {topic}" in finding.expected
        assert f"on {topic} until verify has passed" in finding.remedy

    def test_what_was_taken_compressed_is_no_finding_and_the_codec_is_told(
        self, client: Client, tmp_path: Path, unique: str
    ) -> None:
        make(client, unique)
        topic = f"{unique}-totals-changelog"
        producer = Producer({**client, "compression.type": "zstd", "linger.ms": 50})
        for key in KEYS * 3:
            producer.produce(topic, ZEROS[:900_000], key, expected_partition("", key, 4), timestamp=START_MS)
        assert producer.flush(30) == 0
        ClusterAdmin(KafkaConnection(client)).alter_configs(topic, {"max.message.bytes": "100000"})
        found = run_preflight(client, tmp_path, unique)
        assert found.plan is not None
        assert {m.source: m.compression for m in found.plan.moves if m.compression} == {topic: "zstd"}
        assert f"Compressed with zstd, and so are their copies: {topic}." in found.messages
