"""Two instances with the streams protocol (KIP-1071) restore nothing twice, whatever tasks the brokers assign."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.expansion.prewarming import EVERYTHING, KEEP, gate_group, instance_groups
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.expansion import restoring_everything
from kafka_rescale.operations.expansion.restoring import Changed
from kafka_rescale.operations.expansion.restoring_everything import RestoringEverything

from testbed.jars import ensure_gate_jar
from testbed.processes import wait_until
from tests.support.streams_member import StreamsMember, streams_member

pytestmark = pytest.mark.integration

PARTITIONS, ENTRIES = 4, 50
GATE = {"default.client.supplier": "org.kafkarescale.WarmUpGate", "group.protocol": "classic"}
RESTORED = re.compile(r"Finished restoring changelog (\S+) .*total number of (\d+) records")


@contextmanager
def two_instances(
    client: dict[str, str], unique: str, directory: Path, settings: dict[str, str]
) -> Iterator[list[StreamsMember]]:
    """Two instances. Each has the local state of its last start."""
    jars = [ensure_gate_jar()] if GATE.items() <= settings.items() else []
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                streams_member(client["bootstrap.servers"], unique, unique, directory / name, settings, jars=jars)
            )
            for name in ("a", "b")
        ]


def watch_of(client: dict[str, str], unique: str) -> RestoringEverything:
    """Make an input and a changelog with records in every partition, and tell the gate to restore everything."""
    admin, changelog = ClusterAdmin(KafkaConnection(client)), f"{unique}-counts-changelog"
    for topic in (unique, f"{unique}-counts"):
        admin.ensure_topic(topic, PARTITIONS, 1, {})
    admin.ensure_topic(changelog, PARTITIONS, 1, {"cleanup.policy": "compact"})
    copy_entries(client, changelog, 0)
    return watched(admin, unique, EVERYTHING)


def copy_entries(client: dict[str, str], changelog: str, first: int) -> None:
    """Write records of so many keys into each partition of a changelog."""
    producer = Producer(client)
    for partition in range(PARTITIONS):
        for entry in range(first, first + ENTRIES):
            producer.produce(changelog, bytes(8) + (7).to_bytes(8, "big"), f"key-{entry}".encode(), partition)
    assert producer.flush(20) == 0


def watched(admin: ClusterAdmin, unique: str, text: str) -> RestoringEverything:
    """Tell the gate what to do, and look at how far it is."""
    changelog = f"{unique}-counts-changelog"
    for group in (*admin.groups_like(instance_groups(unique)), gate_group(unique)):
        admin.remove_members(group)
        admin.delete_group(group)
    admin.commit(gate_group(unique), {unique: {0: PARTITIONS}}, {unique: {0: text}})
    begins, ends = admin.begin_offsets([changelog]), admin.end_offsets([changelog])
    return RestoringEverything(admin, unique, begins, ends, expected=2)


def restore_behind_gate(
    client: dict[str, str], unique: str, directory: Path, settings: dict[str, str], watch: RestoringEverything
) -> None:
    """Start both behind the gate, and stop them when each has restored."""
    with two_instances(client, unique, directory, settings | GATE) as members:
        wait_until(lambda: watch.look().is_open and watch.is_stable, timeout=90, what="both to have restored")
        wait_until(
            lambda: watch.look().is_open and watch.all_live(), timeout=30, what="both to tell that they live"
        )
        assert len(watch.admin.groups_like(instance_groups(unique))) == 4
        assert watch.admin.describe_group(unique).state == "Dead"
        for member in members:
            member.close()


def restored_by(directory: Path, since: int = 0) -> list[tuple[str, int]]:
    """How many records of each changelog an instance has restored, by its own log from a given character on."""
    return sorted((topic, int(count)) for topic, count in RESTORED.findall(log_of(directory)[since:]))


def log_of(directory: Path) -> str:
    return (directory / "log").read_text()


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", pytest.param("at_least_once", marks=pytest.mark.slow)])
def test_whichever_tasks_they_get_nothing_is_restored_again(
    client: dict[str, str], unique: str, tmp_path: Path, guarantee: str
) -> None:
    settings = {"processing.guarantee": guarantee, "num.stream.threads": "2"}
    watch = watch_of(client, unique)
    all_of_it = [(f"{unique}-counts-changelog-{p}", ENTRIES) for p in range(PARTITIONS)]

    # When both are pre-warmed, then each restores all tasks, alone in a group, and nothing joins the real group
    restore_behind_gate(client, unique, tmp_path, settings, watch)
    assert restored_by(tmp_path / "a") == restored_by(tmp_path / "b") == all_of_it

    # When they restore once more, because their switch was waited for, then each restores what was copied since
    copy_entries(client, f"{unique}-counts-changelog", ENTRIES)
    again = watched(watch.admin, unique, f"{EVERYTHING} {KEEP}")
    since = {name: len(log_of(tmp_path / name)) for name in ("a", "b")}
    restore_behind_gate(client, unique, tmp_path, settings, again)
    assert all(restored_by(tmp_path / name, since[name]) == all_of_it for name in since)

    # When they start for good, the brokers assign the tasks, and no record is restored again
    since = {name: len(log_of(tmp_path / name)) for name in ("a", "b")}
    with two_instances(client, unique, tmp_path, settings | {"group.protocol": "streams"}) as members:
        for member in members:
            member.await_state("RUNNING")
        both = [found for name in since for found in restored_by(tmp_path / name, since[name])]
        group = watch.admin.describe_group(unique)
        assert (group.protocol, group.processes, len(group.members)) == ("streams", 2, 4)
        assert sorted(both) == [(topic, 0) for topic, _ in all_of_it]
        for member in members:
            member.close()


def test_one_that_dies_is_noticed(
    client: dict[str, str], unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring_everything, "SILENT_SECONDS", 8.0)
    watch, told = watch_of(client, unique), list[str]()
    with two_instances(client, unique, tmp_path, GATE) as members:
        wait_until(lambda: watch.look().is_open and watch.is_stable, timeout=90, what="both to have restored")
        members[0].kill()

        def noticed() -> bool:
            try:
                watch.look()
            except Changed as error:
                told.append(str(error))
            return bool(told)

        wait_until(noticed, timeout=60, what="the one that has died to be noticed")
    assert told == ["1 of 2 instances have ended behind the gate"]
