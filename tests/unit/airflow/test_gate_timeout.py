"""What a lag gate does when its time is over: it looks once more, and then says what it has waited for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferralError, TaskDeferred
from kafka_rescale.airflow import lag_gate as gate_module
from kafka_rescale.airflow.lag_gate import GateReason, Reading
from kafka_rescale.airflow.retries import RETRY_POLICY
from kafka_rescale.airflow.sensors import lag_gate as sensor_module
from kafka_rescale.airflow.sensors.lag_gate import LEAST_SECONDS, LagGateSensor
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.errors import ClusterOutage, UnsafeState
from kafka_rescale.core.expansion.lag import decide
from kafka_rescale.core.expansion.notices import failed

RUN: Any = {"dag_run": SimpleNamespace(dag_id="expand_x", run_id="run-1"), "ti": None}
LAGS = [PartitionProgress(topic="x-s-changelog", partition=3, position=10, end=99)]
NO_BRIDGE = Reading(GateReason.JOB_NOT_READY, detail="bridge is not started; see that bridge_x is not paused")
OVER = {"error": "Trigger timeout"}


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> LagGateSensor:
    monkeypatch.setattr(sensor_module.KafkaRescaleHook, "connection", lambda _: None)
    monkeypatch.setattr(sensor_module, "SETTLING_SECONDS", 0)
    return LagGateSensor(task_id="lag_gate", application_id="x", kafka_config_id="k", acceptable_lag=10, stage=1)


def see(monkeypatch: pytest.MonkeyPatch, found: Reading | Exception) -> None:
    def look(*_: object) -> Reading:
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(gate_module, "look", look)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (NO_BRIDGE, "bridge is not started; see that bridge_x is not paused"),
        (Reading(GateReason.HOLDING, decide(LAGS, 10)), "x-s-changelog-3"),
        (ClusterOutage("brokers", found="silence", expected="an answer", remedy="wait"), "brokers: found silence"),
    ],
    ids=["no bridge", "lag", "outage"],
)
def test_the_notice_names_what_the_gate_has_waited_for(
    gate: LagGateSensor, monkeypatch: pytest.MonkeyPatch, found: Reading | Exception, told: str
) -> None:
    see(monkeypatch, found)
    with pytest.raises(UnsafeState) as error:
        gate.resume_execution("__fail__", OVER, RUN)
    notice = failed("x", "1.lag_gate", error.value)
    assert told in notice.message
    assert "not open within 6:00:00" in notice.message
    assert notice.next_step.endswith("trigger the expansion again; it continues where the copies are.")
    decision = RETRY_POLICY.evaluate(error.value, 1, 2)
    assert decision is not None
    assert decision.action.value == "fail"


@pytest.mark.parametrize("reason", [GateReason.OPEN, GateReason.WARMED, GateReason.PAST], ids=str)
def test_a_gate_that_has_opened_while_the_triggerer_was_away_is_passed(
    gate: LagGateSensor, monkeypatch: pytest.MonkeyPatch, reason: GateReason
) -> None:
    see(monkeypatch, Reading(reason))
    assert gate.resume_execution("__fail__", OVER, RUN)["reason"] == reason


def test_a_gate_that_can_open_no_more_says_so(gate: LagGateSensor, monkeypatch: pytest.MonkeyPatch) -> None:
    see(monkeypatch, Reading(GateReason.LEASE_LOST, detail="the expansion was rolled back"))
    with pytest.raises(UnsafeState, match="rolled back"):
        gate.resume_execution("__fail__", OVER, RUN)


def test_a_gate_whose_copy_was_paused_while_the_triggerer_was_away_waits_further(
    gate: LagGateSensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    see(monkeypatch, Reading(GateReason.PAUSED, detail="the copy is paused by ada"))
    with pytest.raises(TaskDeferred) as deferred:
        gate.resume_execution("__fail__", OVER, RUN)
    assert deferred.value.timeout is None
    assert deferred.value.trigger.serialize()[1]["left_seconds"] == LEAST_SECONDS


def test_another_failure_of_the_trigger_stays_one(gate: LagGateSensor, monkeypatch: pytest.MonkeyPatch) -> None:
    see(monkeypatch, Reading(GateReason.OPEN))
    with pytest.raises(TaskDeferralError):
        gate.resume_execution("__fail__", {"error": "Trigger failure"}, RUN)
