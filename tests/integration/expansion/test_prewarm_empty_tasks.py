"""At the start after a pre-warming, Kafka Streams sets up a task with an empty window store once, not twice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.expansion.prewarming import gate_group
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.jars import ensure_gate_jar
from testbed.processes import wait_until
from tests.support.streams_member import streams_member

pytestmark = pytest.mark.integration

GATE = {"default.client.supplier": "org.kafkarescale.WarmUpGate"}
CORRUPTED = "task corruption error"
"""Kafka Streams logs these words when it deletes the state of a task and sets the task up a second time."""
KEPT = {"exactly_once_v2": {"0_0", "0_2"}, "at_least_once": {"0_0", "0_1", "0_2", "0_3"}}
"""The tasks whose directory the start finds.

0_1 has totals and no window, 0_2 has the reverse, 0_3 has neither.
"""


def window_key(key: bytes, start_ms: int) -> bytes:
    """Return a key of a window store's changelog: the key, the window's start, and a number."""
    return key + start_ms.to_bytes(8, "big") + bytes(4)


# In `make test`, exactly once, where Kafka Streams deletes the state of a task that it sets up again.
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", pytest.param("at_least_once", marks=pytest.mark.slow)])
def test_a_task_with_an_empty_store_of_windows_is_not_declared_corrupted_at_the_real_start(
    client: dict[str, str], unique: str, tmp_path: Path, guarantee: str
) -> None:
    # Given tasks with a record in both stores, in one of them, and in none
    admin, producer = ClusterAdmin(KafkaConnection(client)), Producer(client)
    now_ms = time.time_ns() // 1_000_000
    windows, totals = f"{unique}-windows-changelog", f"{unique}-totals-changelog"
    keys = {windows: window_key(b"k", now_ms // 60_000 * 60_000), totals: b"k"}
    filled = {windows: (0, 2), totals: (0, 1)}
    admin.ensure_topic(unique, 4, 1, {})
    for changelog, partitions in filled.items():
        admin.ensure_topic(changelog, 4, 1, {"cleanup.policy": "compact"})
        for partition in partitions:
            value = now_ms.to_bytes(8, "big") + (7).to_bytes(8, "big")
            producer.produce(changelog, value, keys[changelog], partition)
    assert producer.flush(20) == 0
    admin.commit(gate_group(unique), {unique: {0: 4}})

    # When the application is pre-warmed, and then started for good
    settings = {"group.protocol": "classic", "processing.guarantee": guarantee, "totals": "true"}
    servers = client["bootstrap.servers"]
    for of_start, jars in ((GATE, [ensure_gate_jar()]), ({}, [])):
        with streams_member(
            servers, unique, unique, tmp_path, settings | of_start, program="WindowingMember", jars=jars
        ) as member:
            member.await_state("RUNNING")
            if of_start:
                wait_until(
                    lambda: {*filled} <= admin.committed(gate_group(unique)).keys(), timeout=60, what="positions"
                )
            member.close()
        if of_start:
            kept = {path.name for path in (tmp_path / unique).iterdir() if path.is_dir()}
            # Otherwise the start would wait until their session times out.
            admin.remove_members(unique)

    # Then no task is set up twice, and tasks that need no second setup have kept their directories
    log = (tmp_path / "log").read_text()
    assert "The warm-up gate is shut" in log
    assert [line for line in log.splitlines() if CORRUPTED in line] == []
    assert kept == KEPT[guarantee]
