"""A cleared task of a chain waits for an expansion that is at work, and never begins it anew."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators.trigger_dagrun import DagIsPaused
from airflow.sdk.exceptions import AirflowException, DagRunTriggerException, TaskDeferred
from kafka_rescale.airflow.dags import chain as chain_dags
from kafka_rescale.airflow.operators import chain
from kafka_rescale.airflow.triggers import member_run
from kafka_rescale.airflow.triggers.member_run import MemberRunTrigger
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.autoscaling.decision import RunState
from kafka_rescale.core.errors import Outage, Refused

from tests.support.application_files import CHAIN

RUN = "manual__1__chained"


@pytest.fixture
def execute(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Execute a member's task while its run is in a state. A request to Airflow is raised as an exception."""

    def run(state: RunState, *, paused: bool = False) -> None:
        asked = {"expand_orders-app/" + RUN: state}
        monkeypatch.setattr(chain, "run_state", asked.__getitem__)
        ti = SimpleNamespace(
            get_dag=lambda _: SimpleNamespace(is_paused=paused), xcom_push=lambda key, value: None
        )
        task = member()
        task.trigger_run_id = RUN
        task.execute({"ti": ti})  # type: ignore[typeddict-item]

    return run


def member() -> chain.MemberExpansionOperator:
    return chain_dags._expansion(Application.model_validate(CHAIN))


@pytest.mark.parametrize("state", [RunState.ABSENT, RunState.FAILED, RunState.SUCCESS])
def test_a_run_that_is_not_at_work_is_triggered_or_begun_anew(execute: Any, state: RunState) -> None:
    with pytest.raises(DagRunTriggerException) as asked:
        execute(state)
    assert (asked.value.dag_run_id, asked.value.reset_dag_run, asked.value.deferrable) == (RUN, True, True)


def test_a_run_at_work_is_only_waited_for_in_the_triggerer(execute: Any) -> None:
    with pytest.raises(TaskDeferred) as deferred:
        execute(RunState.RUNNING)
    assert is_our_wait(deferred.value)


def is_our_wait(deferred: TaskDeferred) -> bool:
    arguments = {"dag_id": "expand_orders-app", "run_id": RUN, "poll_seconds": 5}
    told = ("kafka_rescale.airflow.triggers.member_run.MemberRunTrigger", arguments)
    return deferred.trigger.serialize() == told and deferred.method_name == "execute_complete"


def test_the_triggered_run_is_waited_for_by_our_trigger_too(execute: Any) -> None:
    """Airflow's runner makes a trigger of its own, which never ends if the run is deleted."""
    with pytest.raises(DagRunTriggerException) as asked:
        execute(RunState.ABSENT)
    assert {str(state.value) for state in asked.value.allowed_states} >= {"queued", "running"}
    with pytest.raises(TaskDeferred) as deferred:
        member().execute_complete({}, ("DagStateTrigger", {"run_ids": [RUN], RUN: "queued"}))  # type: ignore[typeddict-item]
    assert is_our_wait(deferred.value)


def test_a_task_that_waits_on_a_worker_succeeds_only_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "run_state", lambda _: RunState.ABSENT)
    task = member()
    task.deferrable, task.trigger_run_id = False, RUN
    ti = SimpleNamespace(get_dag=lambda _: SimpleNamespace(is_paused=False))
    with pytest.raises(DagRunTriggerException) as asked:
        task.execute({"ti": ti})  # type: ignore[typeddict-item]
    assert asked.value.allowed_states == ["success"]


def test_a_run_that_was_deleted_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    states = iter([RunState.RUNNING, RunState.UNKNOWN, RunState.ABSENT])
    monkeypatch.setattr(member_run, "run_state", lambda _: next(states))
    trigger = MemberRunTrigger(dag_id="expand_orders-app", run_id=RUN, poll_seconds=0.0)
    event = asyncio.run(anext(aiter(trigger.run())))  # type: ignore[arg-type]
    with pytest.raises(Refused, match="somebody has deleted"):
        member().execute_complete({}, event.payload)  # type: ignore[typeddict-item]


@pytest.mark.parametrize("state", ["success", "failed"])
def test_what_it_has_waited_for_decides(state: str) -> None:
    event = ("DagStateTrigger", {"run_ids": [RUN], RUN: state})
    if state == "success":
        member().execute_complete({}, event)  # type: ignore[typeddict-item]
    else:
        with pytest.raises(AirflowException, match="failed"):
            member().execute_complete({}, event)  # type: ignore[typeddict-item]


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.ABSENT])
def test_a_dag_that_is_paused_is_not_waited_for(execute: Any, state: RunState) -> None:
    with pytest.raises(DagIsPaused):
        execute(state, paused=True)


def test_without_an_answer_nothing_is_begun_anew(execute: Any) -> None:
    with pytest.raises(Outage, match="whether the run is at work"):
        execute(RunState.UNKNOWN)
