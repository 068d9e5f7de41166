"""Kafka Streams itself loses records when it closes a corrupted task within a rebalance: docs/broker-faults.md.

If the first case fails with a newer version, Kafka has mended this, and that page has to say so.
"""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.range_reader import read_ranges

from testbed.jars import ensure_gate_jar
from testbed.processes import wait_until
from tests.support.streams_member import StreamsMember, streams_member

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PARTITIONS, RECORDS = 4, 200
PROGRAM = "CorruptingMember"
VERSIONS = ("3.6.2", "3.9.2", "4.0.1", "4.3.1")
# The transaction has to outlast the rebalance, which lasts as long as the test wants.
SETTINGS = {
    "processing.guarantee": "exactly_once_v2",
    "auto.offset.reset": "earliest",
    "producer.transaction.timeout.ms": "120000",
}
FENCED = {"default.client.supplier": "org.kafkarescale.FencedAfterAbort"}


class World:
    """An application with a live instance, and what its topics have."""

    def __init__(self, client: dict[str, str], name: str, directory: Path) -> None:
        self.connection, self.name, self.directory = KafkaConnection(client), name, directory
        self.servers = client["bootstrap.servers"]
        self.admin, self.producer = ClusterAdmin(self.connection), Producer(client)
        self.output, self.spoiled = f"{name}-counts", f"{name}-spoiled"
        for topic in (name, self.output, self.spoiled):
            self.admin.ensure_topic(topic, PARTITIONS, 1, {})

    def send(self, topic: str, keys: range) -> None:
        """Send a record of each key. Return when all have arrived."""
        for key in keys:
            self.producer.produce(topic, b"v", str(key).encode(), key % PARTITIONS)
        assert self.producer.flush(20) == 0

    def keys(self, *, committed: bool) -> set[int]:
        """The keys that a reader of the output gets."""
        ends = self.admin.end_offsets([self.output], read_committed=committed)[self.output]
        ranges = {p: (0, end) for p, end in ends.items()}
        found = read_ranges(self.connection, self.output, ranges, committed=committed)
        return {int(message.key() or b"") for message in found}

    def await_log(self, text: str, beyond: int = 0) -> None:
        """Wait until the first instance has logged a text more than ``beyond`` times."""
        wait_until(lambda: self.logged(text) > beyond, timeout=90, what=f"{text!r} in the log")

    def logged(self, text: str) -> int:
        """How often the first instance has logged a text."""
        return (self.directory / "1" / "log").read_text().count(text)

    def processed(self) -> bool:
        """Whether the application has committed the end of its input."""
        return self.admin.committed(self.name).get(self.name) == self.admin.end_offsets([self.name])[self.name]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("settings", "loses"), [({}, True), (FENCED, False)], ids=["as it is", "fenced"])
def test_a_task_that_is_corrupted_within_a_rebalance_costs_the_records_of_the_others(
    settings: dict[str, str], loses: bool, version: str, client: dict[str, str], unique: str, tmp_path: Path
) -> None:
    world = World(client, unique, tmp_path)

    def member(directory: str) -> AbstractContextManager[StreamsMember]:
        return streams_member(
            world.servers,
            unique,
            unique,
            tmp_path / directory,
            {**SETTINGS, **settings},
            PROGRAM,
            [ensure_gate_jar()],
            version,
        )

    with member("1") as first, member("2") as second:
        first.await_state("RUNNING")
        second.await_state("RUNNING")
        world.send(unique, range(RECORDS))
        wait_until(world.processed, timeout=90, what="the first records to be processed")

        # A rebalance lasts until every member has joined it again, and this one can't.
        second.process.send_signal(signal.SIGSTOP)
        joins = world.logged("(Re-)joining group")
        with member("3") as third:
            world.await_log("(Re-)joining group", beyond=joins)
            world.send(unique, range(RECORDS, 2 * RECORDS))
            # The partitions of the frozen instance have no results, at least one other has all of them.
            wait_until(
                lambda: len(world.keys(committed=False)) >= RECORDS + RECORDS // PARTITIONS,
                timeout=60,
                what="results that are not committed",
            )
            world.send(world.spoiled, range(PARTITIONS))
            world.await_log("Detected the states of tasks")
            second.process.send_signal(signal.SIGCONT)
            third.await_state("RUNNING")
            wait_until(world.processed, timeout=90, what="all records to be processed")
            lost = set(range(2 * RECORDS)) - world.keys(committed=True)
    assert bool(lost) == loses
