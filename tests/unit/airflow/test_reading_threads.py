"""Brokers that hang block the readings of their own triggers, and of no others."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextvars import ContextVar
from threading import Event
from typing import Any

import pytest
from airflow.triggers.base import BaseTrigger
from kafka_rescale.airflow import reading_threads
from kafka_rescale.airflow.lag_gate import GateReason, Reading, Readings
from kafka_rescale.airflow.triggers import bridge_due, pause_alert, switch
from kafka_rescale.airflow.triggers.bridge_due import BridgeDueTrigger
from kafka_rescale.airflow.triggers.lag_gate import LagGateTrigger
from kafka_rescale.airflow.triggers.pause_alert import PauseAlertTrigger
from kafka_rescale.airflow.triggers.switch import SwitchTrigger
from kafka_rescale.core.control.bridge import Verdict
from kafka_rescale.core.control.state import ControlState

OWNER = "expand_x/r"
MORE_THAN_ASYNCIO_HAS = min(32, (os.cpu_count() or 1) + 4) + 1
HANGS, ANSWERS = "hangs", "answers"


def bridge(application: str) -> BaseTrigger:
    return BridgeDueTrigger(kafka_config_id="k", application_id=application, seconds=3600)


def gate(application: str) -> BaseTrigger:
    fields = {"application": application, "owner": OWNER, "threshold": 0}
    return LagGateTrigger(kafka_config_id="k", gate=fields)


def switch_of(application: str) -> BaseTrigger:
    return SwitchTrigger(kafka_config_id="k", application_id=application, owner=OWNER)


def pause(application: str) -> BaseTrigger:
    return PauseAlertTrigger(kafka_config_id="k", application_id=application, owner=OWNER, limit_seconds=60)


@pytest.fixture(autouse=True)
def end(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Brokers that answer about one application so that its trigger fires, and about the other at the end."""
    end = Event()

    def ask(application: str) -> None:
        if application == HANGS:
            end.wait()

    def verdict(_: object, application: str) -> Verdict:
        ask(application)
        return Verdict(True, "due")

    def take(readings: Readings, _: object) -> Reading:
        ask(readings.gate.application)
        return Reading(GateReason.LEASE_LOST)

    def is_over(_: object, application: str, owner: str) -> tuple[bool, str]:
        ask(application)
        return True, "open"

    def state(_: object, application: str) -> ControlState:
        ask(application)
        return ControlState()

    async def connection(_: object) -> None:
        return None

    monkeypatch.setattr(bridge_due.KafkaRescaleHook, "aconnection", connection)
    monkeypatch.setattr(bridge_due, "read_verdict", verdict)
    monkeypatch.setattr(Readings, "take", take)
    monkeypatch.setattr(switch, "_read", is_over)
    monkeypatch.setattr(pause_alert, "_read", state)
    yield end
    end.set()


async def first_event(trigger: BaseTrigger) -> Any:
    async for event in trigger.run():
        return event.payload
    raise AssertionError("no event")


@pytest.mark.parametrize("other", [gate, switch_of, pause])
@pytest.mark.parametrize("hanging", [bridge, gate, switch_of, pause])
def test_readings_that_hang_hold_up_no_other(hanging: Any, other: Any, end: Event) -> None:
    async def fired_beside() -> None:
        held_up = [asyncio.create_task(first_event(hanging(HANGS))) for _ in range(MORE_THAN_ASYNCIO_HAS)]
        try:
            await asyncio.wait_for(first_event(other(ANSWERS)), timeout=20)
            await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(None, int), timeout=20)
        finally:
            end.set()
            for task in held_up:
                task.cancel()

    asyncio.run(fired_beside())


def test_what_a_reading_logs_belongs_to_its_trigger() -> None:
    """Airflow keeps in the context which trigger's log a line belongs to."""
    trigger: ContextVar[str] = ContextVar("trigger")

    async def read() -> str:
        trigger.set("of this trigger")
        return await reading_threads.start_reading(reading_threads.WATCHES, trigger.get)

    assert asyncio.run(read()) == "of this trigger"
