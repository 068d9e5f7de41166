"""A live pipeline grows, partitions first and processors then, while its processes are killed (KIP-287)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka_rescale.core.linear_hashing import LinearHashing
from kafka_rescale.embedded.broker import EmbeddedBroker
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.operations.processors import expand_processors

from tests.support.growing import INITIAL, SECONDS, Growing, processes, produce

pytestmark = pytest.mark.integration


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


@contextmanager
def under_load(connection: KafkaConnection, topics: tuple[str, str]) -> Iterator[list[int]]:
    """Two producers at work; afterwards, how many records they have sent to each topic."""
    stop, sent = processes.Event(), [processes.Value("i", 0) for _ in range(2)]
    at_work = [
        processes.Process(target=produce, args=(connection, topics, name, stop, count), daemon=True)
        for name, count in zip("ab", sent, strict=True)
    ]
    for process in at_work:
        process.start()
    counted: list[int] = []
    try:
        yield counted
    finally:
        stop.set()
        for process in at_work:
            process.join(SECONDS)
    assert [process.exitcode for process in at_work] == [0, 0]
    counted += [count.value for count in sent]


def test_partitions_and_processors_grow_under_load_while_processes_are_killed(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    live = Growing(connection, unique, tmp_path / "live", settle_ms=1_500)
    control = Growing(connection, f"{unique}c", tmp_path / "control")
    live.create(partitions=4)
    control.create()
    with under_load(connection, (live.topic, control.topic)) as sent:
        while not live.outputs():
            live.run()
        assert (live.counts.initial, live.counts.count) == (INITIAL, 2)
        before = live.state()
        live.chance = random.Random(1)
        live.admin.grow_topic(live.topic, 8)
        expand_processors(live.application, connection, 4)
        while live.counts.count < 4 or live.kills < 3:
            live.run()
        assert live.counts.expanding_to == 0
        live.run()
    live.chance = None
    live.run()
    control.run()

    outputs, expected = live.outputs(), control.outputs()
    assert sum(map(len, expected.values())) == sum(sent) > 1_000
    assert outputs.keys() == expected.keys()
    assert {key for key in expected if outputs[key] != expected[key]} == set(), "lost, doubled or reordered"
    hashing, state = LinearHashing(INITIAL), live.state()
    assert {k: v for its in state.values() for k, v in its.items()} == {
        k: v for its in control.state().values() for k, v in its.items()
    }
    assert [{hashing.partition(key, 4) for key in state[p]} for p in range(4)] == [{p} for p in range(4)]
    existing = {0, 1}
    assert sum(len(its & existing) > 1 for its in live.ever_in().values()) == 0, "moved between existing ones"
    assert all(before.values()), "there was something to move"
