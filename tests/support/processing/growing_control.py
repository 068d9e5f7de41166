"""An application that grows beside a control that never does. Both get the same input, and tests compare them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafka_rescale.core.partitioning.linear_hashing import LinearHashing
from kafka_rescale.kafka.client.connection import KafkaConnection

from tests.support.processing.growing import INITIAL, Growing
from tests.support.processing.growing_load import write


def live_and_control(
    connection: KafkaConnection, unique: str, directory: Path, **of_live: Any
) -> tuple[Growing, Growing]:
    """An application that is going to grow, and its control, which never grows."""
    live = Growing(connection, unique, directory / "live", inline=True, **of_live)
    control = Growing(connection, f"{unique}c", directory / "control", inline=True)
    live.create()
    control.create()
    return live, control


def both(live: Growing, control: Growing, known: int, numbers: range) -> None:
    write(live.connection, live.topic, known, numbers)
    write(control.connection, control.topic, 2, numbers)


def grow_input(live: Growing, control: Growing, partitions: int) -> None:
    """Let the application run, grow its input, and run again; both get 400 records first, and 100 behind that."""
    both(live, control, 2, range(400))
    live.run()
    live.admin.grow_topic(live.topic, partitions)
    both(live, control, partitions, range(400, 500))
    live.run()


def same_results(live: Growing, control: Growing, processors: int) -> None:
    """Assert that outputs by key and state are equal, and that each key's state is where it belongs."""
    outputs, expected = live.outputs(), control.outputs()
    assert outputs.keys() == expected.keys()
    assert {key for key in expected if outputs[key] != expected[key]} == set(), "lost, doubled or reordered"
    hashing, state = LinearHashing(INITIAL), live.state()
    assert {k: v for its in state.values() for k, v in its.items()} == {
        k: v for its in control.state().values() for k, v in its.items()
    }
    homes = [{hashing.partition(key, processors) for key in state[p]} for p in range(processors)]
    assert homes == [{p} for p in range(processors)]


def moved_between(live: Growing, existing: set[int]) -> set[bytes]:
    """Keys that have records in the changelogs of several of the processors that existed before."""
    return {key for key, its in live.ever_in().items() if len(its & existing) > 1}
