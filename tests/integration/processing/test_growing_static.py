"""A pipeline with state and a statically partitioned input grows with its processors (KIP-878, KIP-287)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.errors import Refused, UnsafeState
from kafka_rescale.kafka.admin import growing_topics
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.processing import processors
from kafka_rescale.operations.processing.processors import expand_processors

from testbed.broker import EmbeddedBroker
from tests.support.processing.growing import Growing
from tests.support.processing.growing_control import live_and_control, moved_between

pytestmark = pytest.mark.integration
FUNCTIONS = "tests.support.user_partitioners"
T0 = 1_700_000_000_000


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


def write(app: Growing, numbers: range, digits: Iterable[int], partitions: int) -> None:
    """Write numbered records. Their keys end with a digit, by which the function places them."""
    producer = Producer(app.connection.client(**{"linger.ms": 5, "enable.idempotence": True}))
    for number in numbers:
        for digit in digits:
            key = b"d%d-%d" % (number % 15, digit)
            producer.produce(app.topic, b"%d" % number, key, digit % partitions, timestamp=T0 + 10 * number)
    assert producer.flush(30) == 0


def assert_same(live: Growing, control: Growing) -> None:
    assert live.outputs() == control.outputs()
    assert {k: v for its in live.state().values() for k, v in its.items()} == {
        k: v for its in control.state().values() for k, v in its.items()
    }


def digits_of(live: Growing) -> dict[int, set[int]]:
    """For each processor, the last digits of the keys in its state."""
    return {processor: {int(key[-1:]) for key in its} for processor, its in live.state().items()}


def test_new_partitions_are_processed_with_state_and_get_processors_of_their_own(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    live, control = live_and_control(connection, unique, tmp_path, linear=False, static=f"{FUNCTIONS}:pinned")

    def both(numbers: range, digits: tuple[int, ...]) -> None:
        write(live, numbers, digits, 4)
        write(control, numbers, digits, 2)
        live.run()
        control.run()
        assert_same(live, control)

    both(range(60), (0, 1))
    live.admin.grow_topic(live.topic, 4)
    both(range(60, 120), (0, 1, 2, 3))
    assert (live.counts.count, digits_of(live)) == (2, {0: {0, 2}, 1: {1, 3}})

    expand_processors(live.application, connection, 4)
    for _ in range(5):
        if live.counts.count == 4:
            break
        live.run()
    assert live.counts.count == 4
    both(range(120, 180), (0, 1, 2, 3))
    assert digits_of(live) == {0: {0}, 1: {1}, 2: {2}, 3: {3}}
    assert moved_between(live, {0, 1}) == set()


def test_processors_follow_a_statically_partitioned_input_by_themselves(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    live, control = live_and_control(connection, unique, tmp_path, linear=False, static=f"{FUNCTIONS}:pinned")
    live.scaling = {"partition.autoscaling.enabled": True}
    write(live, range(60), (0, 1), 4)
    write(control, range(60), (0, 1), 2)
    live.run()
    live.admin.grow_topic(live.topic, 4)
    write(live, range(60, 120), (0, 1, 2, 3), 4)
    write(control, range(60, 120), (0, 1, 2, 3), 2)
    for _ in range(5):
        live.run()
        if live.counts.count == 4:
            break
    control.run()
    assert_same(live, control)
    assert digits_of(live) == {0: {0}, 1: {1}, 2: {2}, 3: {3}}


def test_a_function_that_is_not_static_after_all_is_found_before_anything_is_processed(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    live, _ = live_and_control(
        connection, unique, tmp_path, linear=False, static=f"{FUNCTIONS}:claims_to_be_static"
    )
    write(live, range(20), (0, 1, 2, 3), 2)
    live.run()
    before = live.outputs()
    live.admin.grow_topic(live.topic, 4)
    write(live, range(20, 40), (0, 1, 2, 3), 4)
    with pytest.raises(UnsafeState, match=r"it in partition [23], by the static partitioner"):
        live.run()
    assert live.outputs() == before


def test_an_input_that_grows_while_it_is_sampled_is_counted_anew(
    connection: KafkaConnection, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KIP-878: if an answer is outside the topic, the counts are read again."""
    live, _ = live_and_control(connection, unique, tmp_path, linear=False, static=f"{FUNCTIONS}:numbered")
    write(live, range(20), (0, 1), 2)
    live.run()
    live.admin.grow_topic(live.topic, 4)
    genuine, looks = processors._check_samples, count(1)

    def grown_before(*given: Any) -> None:
        """After the input was counted with 4 partitions, it grows to 8 and its producers use them."""
        if next(looks) == 1:
            live.admin.grow_topic(live.topic, 8)
            write(live, range(20, 40), range(8), 8)
        genuine(*given)

    monkeypatch.setattr(processors, "_check_samples", grown_before)
    live.run()
    assert next(looks) == 3
    assert {int(key[-1:]) for its in live.state().values() for key in its} == set(range(8))


def test_an_answer_that_stays_outside_of_the_input_is_refused(
    connection: KafkaConnection, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_topics, "BROKERS_KNOW_SECONDS", 1.0)
    live, _ = live_and_control(connection, unique, tmp_path, linear=False, static=f"{FUNCTIONS}:numbered")
    write(live, range(20), (0, 1, 7), 2)
    live.run()
    live.admin.grow_topic(live.topic, 4)
    with pytest.raises(UnsafeState, match="found 7; expected one partition of 0 to 3, and always the same"):
        live.run()


def test_without_the_declaration_the_growth_is_refused(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    live, _ = live_and_control(connection, unique, tmp_path, linear=False)
    write(live, range(20), (0, 1), 4)
    live.run()
    live.admin.grow_topic(live.topic, 4)
    with pytest.raises(Refused, match="no declared linear hashing"):
        live.run()
