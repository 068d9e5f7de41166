"""A run of the bridge waits in the triggerer until there is something to carry, and needs no worker meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.exceptions import DownstreamTasksSkipped
from airflow.sdk.exceptions import TaskDeferred
from kafka_rescale.airflow.operators.bridge import LONGEST, BridgeDueOperator
from kafka_rescale.airflow.triggers import bridge_due
from kafka_rescale.airflow.triggers.bridge_due import BridgeDueTrigger
from kafka_rescale.core.control.bridge import Verdict
from kafka_rescale.core.errors import InvalidInput, Outage

from tests.support.small_application import application

NOTHING, DUE = (
    Verdict(False, "no expansion with a repartitioned input"),
    Verdict(True, "orders -> orders-p8: carries on"),
)
AWAY = Outage("brokers", found="nobody", expected="one", remedy="Wait.")
UNKNOWN = InvalidInput("Kafka connection", found="none", expected="one", remedy="Make it.")


def task(monkeypatch: pytest.MonkeyPatch, verdict: Verdict) -> BridgeDueOperator:
    monkeypatch.setattr(BridgeDueOperator, "_verdict", lambda _: verdict)
    monkeypatch.setattr(BridgeDueOperator, "application", lambda _: application("shop"))
    return BridgeDueOperator(task_id="due", application_file="x.yaml")


def context(run_type: str, operator: BridgeDueOperator) -> Any:
    def skipped(**_: Any) -> None:
        raise DownstreamTasksSkipped(tasks=["bridge"])

    operator.skip = skipped  # type: ignore[assignment, method-assign]
    ti = SimpleNamespace(xcom_push=lambda **_: None)
    related = SimpleNamespace(get_flat_relatives=lambda **_: [])
    return {"dag_run": SimpleNamespace(run_type=run_type), "ti": ti, "task": related}


def test_a_scheduled_run_without_anything_to_carry_waits_in_the_triggerer(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = task(monkeypatch, NOTHING)
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute(context("scheduled", operator))
    trigger = deferred.value.trigger
    assert isinstance(trigger, BridgeDueTrigger)
    assert (trigger.application_id, trigger.seconds) == ("shop", LONGEST.total_seconds())
    path, arguments = trigger.serialize()
    assert path == "kafka_rescale.airflow.triggers.bridge_due.BridgeDueTrigger"
    assert BridgeDueTrigger(**arguments).serialize() == (path, arguments)
    with pytest.raises(DownstreamTasksSkipped):
        operator.execute_complete(context("scheduled", operator), "a day is over")


def test_a_run_of_a_person_says_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = task(monkeypatch, NOTHING)
    with pytest.raises(DownstreamTasksSkipped):
        operator.execute(context("manual", operator))


@pytest.mark.parametrize("run_type", ["manual", "scheduled"])
def test_what_is_due_is_begun(monkeypatch: pytest.MonkeyPatch, run_type: str) -> None:
    operator = task(monkeypatch, DUE)
    assert operator.execute(context(run_type, operator)) == DUE.reason
    assert operator.execute_complete(context(run_type, operator), DUE.reason) == DUE.reason


def fired(monkeypatch: pytest.MonkeyPatch, *looks: Verdict | Exception, seconds: float = 60) -> tuple[Any, int]:
    """The event of the trigger, and the number of its looks."""
    left: Iterator[Verdict | Exception] = iter(looks)
    looked = 0

    async def connection(_: Any) -> None:
        return None

    def verdict(*_: Any) -> Verdict:
        nonlocal looked
        looked += 1
        found = next(left)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(bridge_due.KafkaRescaleHook, "aconnection", connection)
    monkeypatch.setattr(bridge_due, "read_verdict", verdict)
    trigger = BridgeDueTrigger(kafka_config_id="k", application_id="shop", seconds=seconds, poll_seconds=0.0)

    async def first() -> Any:
        async for event in trigger.run():
            return event.payload

    return asyncio.run(first()), looked


def test_the_trigger_fires_when_the_bridge_is_due_and_waits_an_outage_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fired(monkeypatch, NOTHING, AWAY, NOTHING, DUE) == (DUE.reason, 4)


def test_what_waiting_does_not_mend_is_found_by_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    payload, looked = fired(monkeypatch, UNKNOWN)
    assert payload.startswith("InvalidInput: Kafka connection")
    assert looked == 1


def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fired(monkeypatch, seconds=0) == ("", 0)
