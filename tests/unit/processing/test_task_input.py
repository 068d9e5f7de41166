"""A task's partitions are merged by timestamp. A partition is done when its last record has been taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError
from hypothesis import given
from hypothesis import strategies as st
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.kafka.processing import task_input
from kafka_rescale.kafka.processing.task_input import TaskInput

LEFT, RIGHT = ("left", 0), ("right", 0)
Source = tuple[str, int]


@dataclass(frozen=True)
class Sent:
    """The parts of a message that are looked at."""

    source: Source
    at: int
    time: int = 0
    reason: KafkaError | None = None

    def topic(self) -> str:
        return self.source[0]

    def partition(self) -> int:
        return self.source[1]

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return 1, self.time

    def error(self) -> KafkaError | None:
        return self.reason


def end_of(source: Source, at: int) -> Sent:
    return Sent(source, at, reason=KafkaError(KafkaError._PARTITION_EOF))


@dataclass
class Brokers:
    """Gives the records of the logs, a few at a time, but not those of paused partitions."""

    logs: dict[Source, list[Sent]]
    at_a_time: int = 3
    paused: set[Source] = field(default_factory=set)
    pauses: int = 0

    def assign(self, partitions: Sequence[Any]) -> None:
        self.assigned = [(p.topic, p.partition, p.offset) for p in partitions]

    def consume(self, count: int, seconds: float) -> list[Sent]:
        for source, log in self.logs.items():
            if log and source not in self.paused:
                taken, self.logs[source] = log[: self.at_a_time], log[self.at_a_time :]
                return taken
        return []

    def pause(self, partitions: Sequence[Any]) -> None:
        self.pauses += 1
        self.paused |= {(p.topic, p.partition) for p in partitions}

    def resume(self, partitions: Sequence[Any]) -> None:
        self.paused -= {(p.topic, p.partition) for p in partitions}


def reading(
    logs: dict[Source, list[Sent]], ends: dict[Source, int], **positions: int
) -> tuple[TaskInput, Brokers]:
    brokers: Any = Brokers(logs)
    return TaskInput(brokers, {source: positions.get(source[0], 0) for source in ends}, ends), brokers


def test_the_lowest_timestamp_of_the_next_records_comes_first_even_if_a_partition_is_out_of_order() -> None:
    left = [Sent(LEFT, 0, 10), Sent(LEFT, 1, 30), Sent(LEFT, 2, 5)]
    right = [Sent(RIGHT, 0, 20), Sent(RIGHT, 1, 25), Sent(RIGHT, 2, 40)]
    source, _ = reading({LEFT: left, RIGHT: right}, {LEFT: 3, RIGHT: 3})
    assert [m.timestamp()[1] for m in source.records()] == [10, 20, 25, 30, 5, 40]
    assert source.positions() == {LEFT: 3, RIGHT: 3}


@pytest.mark.parametrize("generation", ["flights", "flights-backfill-20260101T000000-20260102T000000"])
def test_records_of_one_time_come_in_the_order_of_the_pipelines_own_names_whatever_the_generation(
    generation: str,
) -> None:
    names = {f"{generation}-with-plane-repartition": "with-plane-repartition", "flights-planes": "flights-planes"}
    logs = {(full, number): [Sent((full, number), 0, 5)] for full in names for number in (1, 0)}
    source = TaskInput(cast(Consumer, Brokers(logs)), dict.fromkeys(logs, 0), dict.fromkeys(logs, 1), names=names)
    assert [(names[m.topic() or ""], m.partition()) for m in source.records()] == [
        ("flights-planes", 0),
        ("flights-planes", 1),
        ("with-plane-repartition", 0),
        ("with-plane-repartition", 1),
    ]


def test_positions_are_those_of_what_was_taken_and_not_of_what_was_read() -> None:
    left = [Sent(LEFT, at, at) for at in range(5)]
    source, _ = reading({LEFT: left, RIGHT: [Sent(RIGHT, 0, 100)]}, {LEFT: 5, RIGHT: 1})
    list(islice(source.records(), 2))
    assert source.positions() == {LEFT: 2, RIGHT: 0}


def test_the_end_is_reached_over_markers_and_aborted_records() -> None:
    source, _ = reading({LEFT: [Sent(LEFT, 3, 1), end_of(LEFT, 9)]}, {LEFT: 8}, left=2)
    records = source.records()
    assert next(records).offset() == 3
    assert list(records) == []
    assert source.positions() == {LEFT: 8}


def test_what_lies_behind_the_end_is_not_taken() -> None:
    source, _ = reading({LEFT: [Sent(LEFT, at) for at in range(9)]}, {LEFT: 4})
    assert [m.offset() for m in source.records()] == [0, 1, 2, 3]
    assert source.positions() == {LEFT: 4}


def test_a_partition_without_anything_to_read_is_not_waited_for() -> None:
    source, brokers = reading({LEFT: [Sent(LEFT, 7)]}, {LEFT: 8, RIGHT: 3}, left=7, right=3)
    assert [m.offset() for m in source.records()] == [7]
    assert brokers.assigned == [("left", 0, 7)]
    assert source.positions() == {LEFT: 8, RIGHT: 3}


def test_a_position_behind_the_end_stays_where_it_is() -> None:
    source, _ = reading({}, {LEFT: 5}, left=9)
    assert list(source.records()) == []
    assert source.positions() == {LEFT: 9}


def test_one_partition_is_not_read_into_memory_while_another_one_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(task_input, "FULL", 6)
    monkeypatch.setattr(task_input, "LOW", 2)
    left = [Sent(LEFT, at, at) for at in range(50)]
    right = [Sent(RIGHT, at, at) for at in range(50)]
    source, brokers = reading({LEFT: left, RIGHT: right}, {LEFT: 50, RIGHT: 50})
    taken = [(m.topic(), m.offset()) for m in source.records()]
    assert sorted(taken) == sorted((t, at) for t in ("left", "right") for at in range(50))
    assert brokers.pauses > 0


def test_an_error_of_a_partition_is_told_with_its_name() -> None:
    broken = Sent(LEFT, 0, reason=KafkaError(KafkaError._AUTO_OFFSET_RESET))
    source, _ = reading({LEFT: [broken]}, {LEFT: 3})
    with pytest.raises(UnsafeState, match="topic 'left' partition 0"):
        list(source.records())


@given(st.lists(st.integers(0, 9), max_size=12), st.lists(st.integers(0, 9), max_size=12), st.integers(0, 24))
def test_going_on_from_any_position_gives_the_same_order(left: list[int], right: list[int], cut: int) -> None:
    """So a crash between two transactions does not change the order of processing."""
    logs = {
        source: [Sent(source, at, time) for at, time in enumerate(times)]
        for source, times in ((LEFT, left), (RIGHT, right))
    }
    ends = {source: len(log) for source, log in logs.items()}
    whole, _ = reading({s: list(log) for s, log in logs.items()}, ends)
    expected = list(whole.records())
    first, _ = reading({s: list(log) for s, log in logs.items()}, ends)
    taken = list(islice(first.records(), cut))
    at = first.positions()
    rest, _ = reading({s: log[at[s] :] for s, log in logs.items()}, ends, left=at[LEFT], right=at[RIGHT])
    assert taken + list(rest.records()) == expected
