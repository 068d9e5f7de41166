"""A driver writes the rate with each report, logs a change once, and asks the brokers only if there is a limit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.pace import Instruction, Pace, Rate
from kafka_rescale.core.expansion.pacing import Readings
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.spark.copy import pacer as module
from kafka_rescale.spark.copy.pacer import Pacer

LIMIT = 1_000_000
WELL = Readings(10**12, 3.0, 10**9, throttled_ms=0, under_replicated=(), input_lag="")
NOW = Snapshot((), 0, 0.0)


class World:
    """A job whose pace and readings a test sets."""

    def __init__(self, pace: Pace | None) -> None:
        self.pace, self.rate, self.seen = pace, None, WELL
        self.written: list[Any] = []
        self.asked = 0
        arguments = SimpleNamespace(run="r", attempt=1)
        job: Any = SimpleNamespace(
            key="restore/1", arguments=arguments, put=lambda _, records: self.written.append(records)
        )
        follower: Any = SimpleNamespace(pace=lambda: self.pace, rate=lambda: self.rate)
        harm: Any = SimpleNamespace(read=self.read)
        self.pacer = Pacer(job, "p", follower, harm, 4, lambda: 2)

    def read(self, _: Snapshot) -> Readings:
        self.asked += 1
        return self.seen

    def adapted(self) -> Rate:
        found: Any = self.pacer.adapted(NOW)["rate/restore/1"]
        return Rate.model_validate(found)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(module, "say", lines.append)
    return lines


def test_the_first_rate_is_written_before_the_tasks_begin(said: list[str]) -> None:
    world = World(Pace(plan="p", limit=LIMIT))
    paced = world.pacer.begin()
    assert world.written == [{"rate/restore/1": paced.first}]
    assert (paced.job, paced.first.share) == ("restore/1", LIMIT / 4)
    assert said == ["restore/1: It may use its limit, 1.0 MB/s."]


def test_a_change_is_logged_once_with_its_reason(said: list[str]) -> None:
    world = World(Pace(plan="p", limit=LIMIT))
    assert world.adapted().share == LIMIT / 2, "two of four tasks run now"
    assert not world.pacer.has_news
    world.seen = Readings(2 * 10**12, 3.0, 10**9, throttled_ms=0, under_replicated=("t-0",), input_lag="")
    assert world.adapted().bytes_per_second == LIMIT // 2
    assert world.pacer.has_news
    world.adapted()
    assert not world.pacer.has_news
    reason = "1 partition has fewer replicas in sync than replicas: t-0"
    assert said == [f"restore/1: It may use 500.0 kB/s of 1.0 MB/s: {reason}."]


def test_a_word_is_obeyed_in_the_next_report(said: list[str]) -> None:
    world = World(Pace(plan="p", limit=LIMIT))
    world.pace = Pace(plan="p", limit=LIMIT, paused=Instruction(by="ada", at_ms=0))
    assert world.adapted().share == 0.0
    assert world.pacer.is_paused
    world.pace = Pace(plan="p", limit=2 * LIMIT)
    assert world.adapted().bytes_per_second == 2 * LIMIT
    assert [line.partition(": ")[2] for line in said] == [
        "It is paused by ada since Thu 01 Jan 1970 00:00 UTC.",
        "It may use its limit, 2.0 MB/s.",
    ]


@pytest.mark.parametrize("pace", [None, Pace(plan="p"), Pace(plan="another", limit=1)])
def test_without_a_limit_brokers_are_asked_nothing_and_nothing_is_logged(
    pace: Pace | None, said: list[str]
) -> None:
    world = World(pace)
    assert world.pacer.begin().first.share is None
    assert world.adapted().share is None
    assert (world.asked, said) == (0, [])
