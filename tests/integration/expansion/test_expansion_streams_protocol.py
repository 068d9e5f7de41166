"""A live application with the streams protocol (KIP-1071) and its own partitioner is pre-warmed, from 4 to 6."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.lifecycle.instance import Instance
from kafka_rescale.operations.expansion.stages import expand_stage

from testbed.broker import EmbeddedBroker
from testbed.expansion import ROOT, Expansion
from testbed.processes import wait_until
from tests.support.counting_lifecycle import VARIABLE, Counting
from tests.support.stores import live_entries
from tests.support.user_partitioners import by_adler

pytestmark = [pytest.mark.integration, pytest.mark.slow]

BEFORE, AFTER, KEYS, ROUNDS = 4, 6, 300, 3
PARTITIONER = "tests.support.user_partitioners:by_adler"
SETTINGS = {
    "group.protocol": "streams",
    "statestore.cache.max.bytes": "0",
    "commit.interval.ms": "100",
}


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker for this test alone, because an expansion needs the machine's memory."""
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as running:
        yield running


@pytest.fixture(params=["exactly_once_v2", "at_least_once"])
def file(
    own_broker: EmbeddedBroker,
    tmp_path: Path,
    unique: str,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Path]:
    """The application file, for each guarantee. Its instances end with the test."""
    given = {
        "servers": own_broker.bootstrap_servers,
        "topic": unique,
        "directory": str(tmp_path / "state"),
        "settings": {**SETTINGS, "processing.guarantee": request.param},
    }
    monkeypatch.setenv(VARIABLE, json.dumps(given))
    # As the documentation asks of a user: Spark's Python workers have to find the function's module.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    declared = {
        "application_id": unique,
        "partitions": AFTER,
        "inputs": [{"topic": unique, "policy": "paused", "partitioner": PARTITIONER}],
        "outputs": [{"topic": f"{unique}-counts"}],
        "subtopologies": [{"sources": [unique], "stores": ["counts"], "sinks": [f"{unique}-counts"]}],
        "stores": [{"name": "counts", "type": "timestamped-key-value", "partitioner": PARTITIONER}],
        "lifecycle": {"type": "python", "callable": "tests.support.counting_lifecycle:GatedCounting"},
    }
    path = tmp_path / "application.yaml"
    path.write_text(yaml.safe_dump(declared))
    yield path
    for member in Counting.members.values():
        member.kill()


def test_every_record_is_counted_once(own_broker: EmbeddedBroker, tmp_path: Path, unique: str, file: Path) -> None:
    client, servers = own_broker.client_config(), own_broker.bootstrap_servers
    admin = ClusterAdmin(KafkaConnection(client))
    for topic in (unique, f"{unique}-counts"):
        admin.ensure_topic(topic, BEFORE, 1, {})
    expected = _send(client, unique, BEFORE, rounds=ROUNDS)
    blue = Instance(unique, 1, BEFORE)
    Counting().start(blue)
    Counting.members[unique].await_state("RUNNING")
    _await_processed(admin, unique, unique)

    expansion = Expansion.of_file(file, servers, tmp_path / "run")
    timings = expansion.run()

    # With pre-warming, it restores the content of its changelog once, behind the gate
    green = f"{unique}-g2"
    restored = _restored(tmp_path, green)
    assert len(restored) == 2 * AFTER
    assert sum(restored[:AFTER]) == ROUNDS * KEYS
    assert sum(restored[AFTER:]) == 0
    assert admin.groups_like(f"{green}-.*") == ()
    assert admin.describe_group(green).protocol == "streams"
    assert not admin.describe_group(unique).is_live
    assert admin.describe_topics([unique])[unique].partitions == AFTER
    expected += _send(client, unique, AFTER, rounds=2)
    _await_processed(admin, f"{unique}-g2", unique)
    Counting().stop(Instance(f"{unique}-g2", 2, AFTER))
    found = live_entries(servers, f"{unique}-g2-counts-changelog")
    assert {key: int.from_bytes(value, "big") for key, (value, _) in found.items()} == expected
    print(f"{BEFORE}→{AFTER}, streams protocol: {timings}")


def test_pre_warming_restores_once_and_leaves_no_group_behind(
    own_broker: EmbeddedBroker, tmp_path: Path, unique: str, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without Spark's jobs: the test writes what they would copy."""
    caplog.set_level("INFO")
    client, servers, green = own_broker.client_config(), own_broker.bootstrap_servers, f"{unique}-g2"
    admin, changelog = ClusterAdmin(KafkaConnection(client)), f"{green}-counts-changelog"
    for topic in (unique, f"{unique}-counts"):
        admin.ensure_topic(topic, BEFORE, 1, {})
    _send(client, unique, BEFORE, rounds=1)
    Counting().start(Instance(unique, 1, BEFORE))
    Counting.members[unique].await_state("RUNNING")
    _await_processed(admin, unique, unique)
    expansion = Expansion.of_file(file, servers, tmp_path / "run")
    plan = expansion.begin()
    for stage in plan.stages:
        expand_stage(expansion.application, expansion.connection, owner=expansion.owner, stage=stage.index)
    producer = Producer(client)
    for partition in range(AFTER):
        producer.produce(changelog, bytes(8) + (7).to_bytes(8, "big"), b"key", partition)
    assert producer.flush(20) == 0

    timings = expansion.prewarm()

    assert timings is not None
    assert timings.keys() == {"start", "restore", "stop"}
    assert "1 instances restore the stores of all tasks" in caplog.text
    assert _restored(tmp_path, green) == [1] * AFTER
    assert admin.groups_like(f"{green}.*") == ()
    assert Counting().is_running(Instance(unique, 1, BEFORE))


def _restored(directory: Path, green: str) -> list[int]:
    """Return how many records green has restored of each partition, in the order of its log."""
    log = (directory / "state" / green / "log").read_text()
    return [int(count) for count in re.findall(r"Finished restoring .* total number of (\d+) records", log)]


def _send(client: dict[str, str], topic: str, partitions: int, rounds: int) -> Counter[bytes]:
    """Write every key ``rounds`` times, placed by the function, and return how often each key was written."""
    producer = Producer(client)
    sent: Counter[bytes] = Counter()
    for key in (f"key-{i % KEYS}".encode() for i in range(rounds * KEYS)):
        producer.produce(topic, b"v", key, by_adler(topic, key, partitions))
        sent[key] += 1
    assert producer.flush(20) == 0
    return sent


def _await_processed(admin: ClusterAdmin, group: str, topic: str) -> None:
    def processed() -> bool:
        committed = admin.committed(group).get(topic, {})
        return all(committed.get(p, 0) >= end for p, end in admin.end_offsets([topic])[topic].items())

    wait_until(processed, timeout=90, what=f"{group} to process {topic}")
