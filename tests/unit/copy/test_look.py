"""Ends are asked for beside the copy: one request at a time, and the copy never waits for an answer."""

from __future__ import annotations

from collections.abc import Collection
from threading import Event
from typing import Any

import pytest
from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import ClusterOutage, RescaleError, UnsafeState
from kafka_rescale.kafka.copy.look import Answer, Look

from testbed.processes import wait_until

SOURCES = [("blue", 0), ("blue", 1)]


class Brokers:
    """Brokers that answer as soon as the test allows it."""

    def __init__(self) -> None:
        self.may_answer, self.is_away = Event(), False
        self.asked: list[list[TopicPartition]] = []
        self.refusal: RescaleError | None = None

    def ends_of(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        self.asked.append(list(partitions))
        assert self.may_answer.wait(30)
        if self.refusal is not None:
            raise self.refusal
        if self.is_away:
            raise ClusterOutage("offsets", found="nothing", expected="an answer", remedy="Run again.")
        return dict.fromkeys(partitions, 7)


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


def look_of(brokers: Brokers, seconds: float = 0.0) -> Look:
    admin: Any = brokers
    return Look(admin, seconds, lambda: 1_000)


def answered(look: Look) -> Answer:
    found: list[Answer | None] = []

    def has_come() -> bool:
        found.append(look.take_answer())
        return found[-1] is not None

    wait_until(has_come, timeout=30, what="the answer")
    assert found[-1] is not None
    return found[-1]


def test_it_goes_on_while_brokers_are_slow_and_the_answer_comes_once(brokers: Brokers) -> None:
    look = look_of(brokers)
    for _ in range(3):
        look.ask(lambda: SOURCES)
        assert look.take_answer() is None
    brokers.may_answer.set()
    assert answered(look) == (1_000, {("blue", 0): 7, ("blue", 1): 7})
    assert brokers.asked == [SOURCES]
    assert look.take_answer() is None


def test_it_is_too_early_for_another_question(brokers: Brokers) -> None:
    brokers.may_answer.set()
    look = look_of(brokers, seconds=3600.0)
    look.ask(lambda: SOURCES)
    assert brokers.asked == []


def test_what_the_brokers_refuse_is_raised_where_the_answer_is_taken(brokers: Brokers) -> None:
    brokers.may_answer.set()
    brokers.refusal = UnsafeState("topic 'blue'", found="no permission", expected="Describe", remedy="Grant it.")
    look = look_of(brokers)
    look.ask(lambda: SOURCES)
    with pytest.raises(UnsafeState, match="no permission"):
        answered(look)


def test_after_an_outage_the_same_is_asked_again(brokers: Brokers) -> None:
    brokers.may_answer.set()
    look, brokers.is_away = look_of(brokers), True
    look.ask(lambda: SOURCES)
    wait_until(lambda: len(brokers.asked) == 1, timeout=30, what="the first question")
    brokers.is_away = False

    def asked_again() -> bool:
        look.ask(lambda: SOURCES)
        return len(brokers.asked) == 2

    wait_until(asked_again, timeout=30, what="the second question")
    assert answered(look)[1] == {("blue", 0): 7, ("blue", 1): 7}
