"""A pause, or a rest for a disk, does not use up the time limit of a lag gate."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from kafka_rescale.airflow import lag_gate as gate_module
from kafka_rescale.airflow.lag_gate import Gate, GateReason, Reading
from kafka_rescale.airflow.sensors import lag_gate as sensor_module
from kafka_rescale.airflow.sensors.lag_gate import LEAST_SECONDS, LagGateSensor
from kafka_rescale.airflow.triggers import lag_gate as trigger_module
from kafka_rescale.airflow.triggers.lag_gate import LagGateTrigger
from kafka_rescale.core.errors import ClusterOutage

RUN: Any = {"dag_run": SimpleNamespace(dag_id="expand_x", run_id="run-1"), "ti": None}
GATE = Gate(application="x", owner="expand_x/run-1", threshold=10)
OPEN, HOLDING, NOT_READY = map(Reading, (GateReason.OPEN, GateReason.HOLDING, GateReason.JOB_NOT_READY))
PAUSED = Reading(GateReason.PAUSED, detail="the copy is paused by ada")
MINUTE, HOUR = 60.0, 3600.0


class Gates:
    """One gate, from deferral to deferral. A look at it takes place every ten seconds of the test's clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, limit: float) -> None:
        self.now = 1_000_000.0
        self.left: Iterator[Reading] = iter(())
        self.sensor = LagGateSensor(
            task_id="gate",
            application_id="x",
            kafka_config_id="k",
            acceptable_lag=10,
            poll_seconds=0,
            timeout=timedelta(seconds=limit),
        )
        clock = SimpleNamespace(time=lambda: self.now, sleep=lambda _: None, monotonic=lambda: self.now)
        monkeypatch.setattr(trigger_module, "time", clock, raising=False)
        monkeypatch.setattr(sensor_module, "time", clock)
        monkeypatch.setattr(gate_module, "look", lambda *_: self.look())

        async def connection(_: object) -> None: ...

        monkeypatch.setattr(trigger_module.KafkaRescaleHook, "aconnection", connection)
        monkeypatch.setattr(sensor_module.KafkaRescaleHook, "connection", lambda _: None)

    def look(self) -> Reading:
        seen = next(self.left)
        if isinstance(seen, Exception):
            raise seen
        return seen

    def see(self, *stretches: tuple[Reading | Exception, float]) -> None:
        """Set what is seen from now on, and for how many seconds each."""

        def readings() -> Iterator[Reading | Exception]:
            for reading, seconds in stretches:
                for _ in range(round(seconds / 10)):
                    self.now += 10
                    yield reading

        self.left = readings()

    def begin(self) -> TaskDeferred:
        """Let the task look, and hand over."""
        with pytest.raises(TaskDeferred) as deferred:
            self.sensor.execute(RUN)
        return deferred.value

    def fire(self, deferred: TaskDeferred) -> dict[str, Any]:
        """Let the triggerer watch until it fires; the deferral must not have timed out by then."""
        since, trigger = self.now, deferred.trigger
        again = LagGateTrigger(**trigger.serialize()[1])

        async def first() -> dict[str, Any]:
            return (await anext(aiter(again.run()))).payload

        event = asyncio.run(first())
        assert deferred.timeout is None or since + deferred.timeout.total_seconds() > self.now, "timed out"
        return event

    def go_on(self, event: dict[str, Any]) -> TaskDeferred:
        """Let the task hear the event, and hand over again."""
        with pytest.raises(TaskDeferred) as deferred:
            self.sensor.execute_complete(RUN, event)
        return deferred.value


@pytest.mark.parametrize("after", [HOLDING, NOT_READY], ids=lambda reading: str(reading.reason))
def test_a_pause_near_the_end_of_the_limit_leaves_what_was_left(
    monkeypatch: pytest.MonkeyPatch, after: Reading
) -> None:
    """A run that fails for a pause is rolled back, and nobody has asked for that."""
    gates = Gates(monkeypatch, HOUR)
    gates.see((HOLDING, 55 * MINUTE), (PAUSED, 3 * HOUR), (after, MINUTE))
    waiting = gates.begin()
    paused = gates.go_on(gates.fire(waiting))
    assert paused.timeout is None, "while it is paused, nothing counts"
    goes_on = gates.go_on(gates.fire(paused))
    assert goes_on.timeout == pytest.approx(timedelta(minutes=5), abs=timedelta(seconds=20))


def test_an_outage_does_not_end_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    away = ClusterOutage("lag", found="nothing", expected="an answer", remedy="Run again.")
    gates = Gates(monkeypatch, HOUR)
    gates.see((HOLDING, 59 * MINUTE), (PAUSED, MINUTE), (away, 2 * HOUR), (PAUSED, MINUTE), (OPEN, MINUTE))
    paused = gates.go_on(gates.fire(gates.begin()))
    assert gates.fire(paused)["reason"] == GateReason.OPEN


def test_many_short_pauses_do_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    gates = Gates(monkeypatch, HOUR)
    gates.see(*[(PAUSED, 590.0), (HOLDING, 70.0)] * 30)
    deferred = gates.begin()
    for _ in range(30):
        assert deferred.timeout is None
        deferred = gates.go_on(gates.fire(deferred))
        deferred = gates.go_on(gates.fire(deferred)) if _ < 29 else deferred
    assert deferred.timeout == pytest.approx(timedelta(minutes=60 - 29 * 70 / 60), abs=timedelta(minutes=5))


def test_what_is_seen_while_it_is_paused_opens_the_gate_when_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    gates = Gates(monkeypatch, HOUR)
    gates.see((PAUSED, 2 * HOUR), (OPEN, MINUTE))
    event = gates.fire(gates.begin())
    assert event == OPEN.event()


def test_a_gate_that_is_nearly_out_of_time_is_still_read_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    gates = Gates(monkeypatch, HOUR)
    gates.see((HOLDING, HOUR - 10), (PAUSED, HOUR), (HOLDING, MINUTE))
    deferred = gates.go_on(gates.fire(gates.go_on(gates.fire(gates.begin()))))
    assert deferred.timeout == timedelta(seconds=LEAST_SECONDS)


def test_a_trigger_that_an_earlier_version_has_stored_lets_the_limit_begin_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gates = Gates(monkeypatch, HOUR)
    gates.see((HOLDING, 55 * MINUTE), (PAUSED, HOUR), (HOLDING, MINUTE))
    stored = LagGateTrigger(kafka_config_id="k", gate=asdict(GATE), poll_seconds=0)
    paused = gates.go_on(gates.fire(TaskDeferred(trigger=stored, method_name="execute_complete")))
    assert gates.go_on(gates.fire(paused)).timeout == timedelta(hours=1)
    assert gates.go_on(PAUSED.event()).timeout is None
