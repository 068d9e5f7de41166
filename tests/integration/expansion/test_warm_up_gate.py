"""Real applications behind the warm-up gate: what it refuses and tells, and which local state it leaves alone.

A write that the gate refuses may already be in a local store. So the gate leaves a mark in its group.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.expansion.prewarming import gate_group, refusals
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.jars import ensure_gate_jar
from testbed.processes import wait_until
from tests.support.streams_member import streams_member

pytestmark = pytest.mark.integration

GATED = {
    "default.client.supplier": "org.kafkarescale.WarmUpGate",
    "group.protocol": "classic",
    "processing.guarantee": "at_least_once",
}
COUNT = 3
"""The future count of the input, kept as an offset for instances that start later. The mark does not change it."""


@pytest.mark.parametrize(
    ("settings", "state"),
    [({}, "ERROR"), ({"puts.swallow": "true"}, "REFUSED"), ({"puts.cache": "true"}, "PUT")],
    ids=["it ends the application", "the application swallows it", "only the flush at the stop is refused"],
)
def test_what_the_gate_has_refused_is_told_by_its_group(
    client: dict[str, str], unique: str, tmp_path: Path, settings: dict[str, str], state: str
) -> None:
    admin = ClusterAdmin(KafkaConnection(client))
    admin.ensure_topic(unique, 1, 1, {})
    admin.commit(gate_group(unique), {unique: {0: COUNT}})
    assert refusals(admin.committed_metadata(gate_group(unique))) == ()

    with streams_member(
        client["bootstrap.servers"],
        unique,
        unique,
        tmp_path,
        {**GATED, **settings},
        program="PunctuatingMember",
        jars=[ensure_gate_jar()],
    ) as member:
        member.await_state(state)
        member.close()

    [refused] = refusals(admin.committed_metadata(gate_group(unique)))
    assert refused.startswith("refused: ")
    assert admin.committed(gate_group(unique))[unique] == {0: COUNT}
    if "puts.cache" not in settings:
        assert refused == f"refused: a record for topic {unique}-ticks-changelog"


# In `make test`, exactly once; at least once, the tests above have applications whose writes the gate refuses.
@pytest.mark.parametrize("guarantee", [pytest.param("at_least_once", marks=pytest.mark.slow), "exactly_once_v2"])
def test_an_application_that_only_restores_is_told_of_nothing(
    client: dict[str, str], unique: str, tmp_path: Path, guarantee: str
) -> None:
    admin = ClusterAdmin(KafkaConnection(client))
    changelog = f"{unique}-counts-changelog"
    admin.ensure_topic(unique, 1, 1, {})
    admin.ensure_topic(changelog, COUNT, 1, {"cleanup.policy": "compact"})
    producer = Producer(client)
    producer.produce(unique, b"v", b"k", 0)
    for partition in range(COUNT):
        producer.produce(changelog, (7).to_bytes(8, "big"), b"k", partition)
    assert producer.flush(20) == 0
    admin.commit(gate_group(unique), {unique: {0: COUNT}})

    settings = {**GATED, "processing.guarantee": guarantee, "commit.interval.ms": "100"}
    with streams_member(
        client["bootstrap.servers"], unique, unique, tmp_path, settings, jars=[ensure_gate_jar()]
    ) as member:
        member.await_state("RUNNING")
        told = {changelog: dict.fromkeys(range(COUNT), 1)}
        wait_until(
            lambda: admin.committed(gate_group(unique)) == {unique: {0: COUNT}, **told},
            timeout=60,
            what="the positions to be told",
        )
        member.close()

    assert refusals(admin.committed_metadata(gate_group(unique))) == ()
    assert admin.committed(unique) == {}


@pytest.mark.parametrize("text", ["", "hold 1"], ids=["nothing is there", "a cutover has left its pass there"])
def test_without_a_pre_warming_the_gate_neither_deletes_local_state_nor_lets_the_application_wait(
    client: dict[str, str], unique: str, tmp_path: Path, text: str
) -> None:
    admin = ClusterAdmin(KafkaConnection(client))
    admin.ensure_topic(unique, 1, 1, {})
    if text:
        admin.commit(gate_group(unique), {unique: {0: 4711}}, {unique: {0: text}})
    restored = tmp_path / unique / "0_0" / "rocksdb" / "counts" / "CURRENT"
    restored.parent.mkdir(parents=True)
    restored.write_text("what a pre-warming has restored that has ended since")

    with streams_member(
        client["bootstrap.servers"], unique, unique, tmp_path, GATED, jars=[ensure_gate_jar()]
    ) as member:
        assert member.process.wait(60) != 0
        assert member.states == []

    assert f"found no counts of inputs in group {gate_group(unique)}" in (tmp_path / "log").read_text()
    assert restored.exists()


def test_the_local_state_of_an_instance_that_runs_is_left_alone(
    client: dict[str, str], unique: str, tmp_path: Path
) -> None:
    admin = ClusterAdmin(KafkaConnection(client))
    admin.ensure_topic(unique, 1, 1, {})
    admin.ensure_topic(f"{unique}-counts", 1, 1, {})
    admin.commit(gate_group(unique), {unique: {0: 1}})
    servers, jars = client["bootstrap.servers"], [ensure_gate_jar()]
    with streams_member(servers, unique, unique, tmp_path) as running:
        running.await_state("RUNNING")
        state = {path.name for path in (tmp_path / unique).iterdir()}
        assert "0_0" in state

        with streams_member(servers, unique, unique, tmp_path, GATED, jars=jars) as gated:
            assert gated.process.wait(60) != 0

        assert f"found another instance that uses {tmp_path / unique}" in (tmp_path / "log").read_text()
        assert {path.name for path in (tmp_path / unique).iterdir()} == state
        running.close()


def test_an_instance_that_has_ended_tells_nothing_more_although_its_process_lives_on(
    client: dict[str, str], unique: str, tmp_path: Path
) -> None:
    admin = ClusterAdmin(KafkaConnection(client))
    admin.ensure_topic(unique, 1, 1, {})
    admin.commit(gate_group(unique), {unique: {0: COUNT}})
    with streams_member(
        client["bootstrap.servers"],
        unique,
        unique,
        tmp_path,
        GATED,
        program="LingeringMember",
        jars=[ensure_gate_jar()],
    ) as member:
        member.await_state("ERROR")
        member.await_state("LEFT []")
