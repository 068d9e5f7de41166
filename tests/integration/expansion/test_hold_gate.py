"""Real Kafka Streams instances behind the hold gate: only the complete set of start offsets lets them in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.expansion.holding import Door, pass_of, start_offsets
from kafka_rescale.core.expansion.prewarming import gate_group
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan, Stage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.broker import EmbeddedBroker
from testbed.jars import ensure_gate_jar
from testbed.processes import wait_until
from tests.support.streams_member import StreamsMember, streams_member

pytestmark = pytest.mark.integration

PARTITIONS, RECORDS, START = 4, 10, 6
NUMBER = 4711
HELD = {"default.client.supplier": "org.kafkarescale.HoldGate", "commit.interval.ms": "100"}


@dataclass
class World:
    """Green of an application with one input and one store, before its promotion."""

    servers: str
    name: str
    directory: Path
    stack: ExitStack
    instances: int = 0

    def __post_init__(self) -> None:
        self.admin = ClusterAdmin(KafkaConnection({"bootstrap.servers": self.servers}))
        changelog = Move(
            kind=MoveKind.CHANGELOG,
            source="blue-counts-changelog",
            target=f"{self.name}-counts-changelog",
            store="counts",
            source_partitions=2,
            target_partitions=PARTITIONS,
        )
        of_input = InputPlan(
            topic=self.name, policy=InputPolicy.PAUSED, partitioner="murmur2", current=2, target=PARTITIONS
        )
        self.plan = Plan(
            application=self.name,
            generation=2,
            blue="blue",
            green=self.name,
            partitions=PARTITIONS,
            stages=(Stage(index=1, name="stage_1_subtopology_0", subtopology=0, moves=(changelog,)),),
            inputs=(of_input,),
        )
        self.admin.ensure_topic(self.name, PARTITIONS, 1, {})
        self.admin.ensure_topic(f"{self.name}-counts", PARTITIONS, 1, {})
        self.admin.ensure_topic(changelog.target, PARTITIONS, 1, {"cleanup.policy": "compact"})
        producer = Producer({"bootstrap.servers": self.servers})
        for p in range(PARTITIONS):
            for _ in range(RECORDS):
                producer.produce(self.name, b"v", f"key-{p}".encode(), p)
        assert producer.flush(20) == 0

    @property
    def gate(self) -> str:
        return gate_group(self.name)

    def hand_out_pass(self, number: int = NUMBER) -> None:
        """Do what a cutover does before it starts the processes."""
        self.admin.commit(self.gate, *pass_of(self.plan, number))

    def launch(self, settings: dict[str, str] | None = None) -> StreamsMember:
        """Start an instance with a state directory of its own."""
        self.instances += 1
        member = streams_member(
            self.servers,
            self.name,
            self.name,
            self.directory / str(self.instances),
            {**HELD, **(settings or {})},
            jars=[ensure_gate_jar()],
        )
        return self.stack.enter_context(member)

    def log(self, instance: int = 1) -> str:
        return (self.directory / str(instance) / "log").read_text()

    def await_waiting(self, count: int = 1) -> None:
        """Wait until so many processes say at the same time that they wait at the door."""
        door = Door(NUMBER, count)

        def is_complete() -> bool:
            door.look(self.admin.committed_metadata(self.gate), time.monotonic())
            return door.waiting(time.monotonic()) >= count

        wait_until(is_complete, timeout=60, what=f"{count} processes at the door")

    def promote(self, partitions: range = range(PARTITIONS)) -> None:
        """Commit start offsets."""
        offsets: PartitionOffsets = {self.name: dict.fromkeys(partitions, START)}
        self.admin.commit(self.name, offsets)

    def await_end(self, member: StreamsMember, said: str) -> None:
        """Wait for a process that ends by itself, and assert that it has joined no group."""
        assert member.process.wait(60) != 0
        assert member.states == [], "a state is one of an instance that was made"
        assert f"held at the door of group {self.name}: found {said}" in self.log()

    def assert_nobody(self) -> None:
        """Assert that the group has had no member. A classic member would linger after its end."""
        assert not self.admin.describe_group(self.name).is_live


@pytest.fixture
def world(client: dict[str, str], unique: str, tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(client["bootstrap.servers"], unique, tmp_path, stack)


@pytest.mark.parametrize(
    ("protocol", "guarantee"),
    [
        ("classic", "at_least_once"),
        pytest.param("classic", "exactly_once_v2", marks=pytest.mark.slow),
        pytest.param("streams", "at_least_once", marks=pytest.mark.slow),
        ("streams", "exactly_once_v2"),
    ],
)
def test_two_instances_join_when_all_start_offsets_are_there_and_go_on_from_them(
    world: World, protocol: str, guarantee: str
) -> None:
    settings = {"group.protocol": protocol, "processing.guarantee": guarantee, "num.stream.threads": "2"}
    world.hand_out_pass()
    members = [world.launch(settings), world.launch(settings)]
    world.await_waiting(2)
    world.assert_nobody()
    assert world.admin.committed(world.name) == {}

    # Offsets are committed in up to two requests. The first of them must let no process in.
    world.promote(range(PARTITIONS - 1))
    world.await_waiting(2)
    world.assert_nobody()

    world.promote()
    for member in members:
        member.await_state("RUNNING")
    read = {p: RECORDS for p in range(PARTITIONS)}
    wait_until(
        lambda: world.admin.committed(world.name)[world.name] == read, timeout=60, what="the rest to be read"
    )
    # With exactly-once, there is a marker after the records of each transaction.
    counted = world.admin.end_offsets([f"{world.name}-counts"])[f"{world.name}-counts"]
    assert all(0 < end <= 2 * (RECORDS - START) for end in counted.values())
    for member in members:
        member.close()


def test_the_time_limit_ends_the_process_and_later_offsets_let_nobody_in(world: World) -> None:
    world.hand_out_pass()
    member = world.launch({"kafka.rescale.hold.seconds": "2"})
    world.await_end(member, "0 of 4 start offsets after 2 s; expected the start offsets, which a cutover commits")
    assert "raise kafka.rescale.hold.seconds" in world.log()
    world.promote()
    world.assert_nobody()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda world: world.admin.delete_group(world.gate), "that the cutover has been called off"),
        (lambda world: world.hand_out_pass(NUMBER + 1), "the pass of another cutover"),
    ],
    ids=["taken back", "replaced"],
)
def test_without_its_pass_a_held_process_ends(world: World, change: Callable[[World], None], said: str) -> None:
    world.hand_out_pass()
    member = world.launch()
    world.await_waiting()
    change(world)
    world.await_end(member, said)
    world.promote()
    world.assert_nobody()


def test_without_a_pass_only_an_application_that_was_promoted_before_starts(world: World) -> None:
    world.await_end(world.launch(), f"neither offsets nor a pass in group {world.gate}")
    world.promote()
    member = world.launch()
    member.await_state("RUNNING")
    assert "Not held" in world.log(2)
    member.close()


@pytest.mark.slow
def test_brokers_that_are_frozen_or_gone_for_a_while_change_nothing(unique: str, tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker, ExitStack() as stack:
        world = World(broker.bootstrap_servers, unique, tmp_path, stack)
        world.hand_out_pass()
        member = world.launch()
        world.await_waiting()
        broker.freeze()
        wait_until(lambda: "no answer about group" in world.log(), timeout=60, what="the process to go on asking")
        broker.thaw()
        world.await_waiting()
        broker.kill()
        time.sleep(5)
        broker.start()
        world.await_waiting()
        world.assert_nobody()
        assert start_offsets(world.plan) == PARTITIONS
        world.promote()
        member.await_state("RUNNING")
        member.close()
