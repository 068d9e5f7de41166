"""A task obeys only the rate of its own attempt, and has no limit while the application is stopped."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.journal import BLUE_STOPPED, Journal, Phase
from kafka_rescale.core.control.pace import Rate
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.spark.copy import paced as module
from kafka_rescale.spark.copy.paced import Paced

from tests.support.plans import plan_for

PLAN = plan_for("orders-app")
FIRST = Rate(run="r", attempt=2, bytes_per_second=100, tasks=2)


def heard(rate: Rate | None, journal: Journal | None = None) -> float | None:
    follower: Any = SimpleNamespace(latest=lambda: journal, rate=lambda: rate)
    return Paced("restore/1", FIRST).by(follower)()


def test_until_its_driver_says_another_rate_it_is_the_first() -> None:
    assert heard(None) == 50.0
    assert heard(Rate(run="r", attempt=2, bytes_per_second=30, tasks=3)) == 10.0
    assert heard(Rate(run="r", attempt=2)) is None
    assert heard(Rate(run="r", attempt=2, bytes_per_second=30, is_paused=True)) == 0.0


@pytest.mark.parametrize("other", [{"run": "q", "attempt": 2}, {"run": "r", "attempt": 1}])
def test_the_rate_of_another_attempt_means_nothing(other: dict[str, Any]) -> None:
    assert heard(Rate(**other, bytes_per_second=1, is_paused=True)) == 50.0


@pytest.mark.parametrize("phase", [*BLUE_STOPPED, Phase.PROMOTED])
def test_while_the_application_is_stopped_there_is_no_limit_and_no_pause(phase: Phase) -> None:
    paused = Rate(run="r", attempt=2, bytes_per_second=1, is_paused=True)
    assert heard(paused, Journal(plan=PLAN, phase=phase)) is None
    assert heard(paused, Journal(plan=PLAN)) == 0.0
    assert heard(paused, Journal(plan=PLAN, phase=Phase.PROMOTED, timings={"total": 1.0})) == 0.0


def test_tasks_of_one_process_share_a_follower(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []

    def follower(*arguments: object) -> Any:
        opened.append(arguments[1:])
        return SimpleNamespace(latest=lambda: None, rate=lambda: None)

    monkeypatch.setattr(module, "JournalFollower", follower)
    monkeypatch.setattr(module, "_followers", {})
    connection = KafkaConnection({"bootstrap.servers": "x:1"})
    for _ in range(3):
        assert Paced("restore/1", FIRST).here(connection, "orders-app")() == 50.0
    assert opened == [("orders-app", "restore/1")]
