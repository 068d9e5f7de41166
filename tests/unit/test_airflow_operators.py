"""Approvals, retries and owners: what decides whether a run goes on."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.exceptions import HITLRejectException
from airflow.sdk import DagRunState, RetryAction
from airflow.sdk.exceptions import AirflowSkipException, TaskAwaitingInput
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from kafka_rescale.airflow.operators import admin, closing
from kafka_rescale.airflow.operators.approval import OptionalApprovalOperator
from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.retries import RETRY_POLICY
from kafka_rescale.airflow.runs import owner_is_finished, owner_of
from kafka_rescale.core.errors import (
    Fenced,
    Finding,
    InvalidInput,
    LeaseHeld,
    Outage,
    PreflightRefused,
    Refused,
    UnsafeState,
)

WORDS = {"found": "a", "expected": "b", "remedy": "c"}


def approval() -> OptionalApprovalOperator:
    return OptionalApprovalOperator(task_id="t", enabled_by="approve_plan", subject="?", body="-")


def test_an_approval_that_nobody_asked_for_succeeds_at_once() -> None:
    assert approval().execute({"params": {"approve_plan": False}}) is None  # type: ignore[typeddict-item]


def test_an_approval_that_was_asked_for_waits_for_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **_: None)
    context: Any = {"params": {"approve_plan": True}, "task_instance": SimpleNamespace(id="1")}
    with pytest.raises(TaskAwaitingInput):
        approval().execute(context)


def test_no_answer_is_a_rejection_and_a_rejection_fails_without_a_retry() -> None:
    task = approval()
    assert (task.fail_on_reject, task.defaults) == (True, ["Reject"])
    assert task.response_timeout is not None
    decision = task.retry_policy.evaluate(HITLRejectException("no"), try_number=1, max_tries=2)
    assert decision.action is RetryAction.FAIL


@pytest.mark.parametrize("kind", [UnsafeState, Refused, LeaseHeld, InvalidInput, Fenced])
def test_what_needs_a_person_is_not_retried(kind: type[Exception]) -> None:
    error = kind("thing", **WORDS)
    assert RETRY_POLICY.evaluate(error, try_number=1, max_tries=2).action is RetryAction.FAIL


def test_a_refused_preflight_is_not_retried() -> None:
    error = PreflightRefused([Finding("thing", "a", "b", "c")])
    assert RETRY_POLICY.evaluate(error, try_number=1, max_tries=2).action is RetryAction.FAIL


def test_an_outage_is_retried() -> None:
    error = Outage("thing", **WORDS)
    assert RETRY_POLICY.evaluate(error, try_number=1, max_tries=2).action is RetryAction.RETRY


def test_the_owner_is_the_run_and_not_its_date() -> None:
    run = SimpleNamespace(dag_id="expand_x", run_id="manual__2", logical_date=None)
    assert owner_of({"dag_run": run}) == "expand_x/manual__2"


@pytest.mark.parametrize(
    ("state", "finished"),
    [("success", True), ("failed", True), ("running", False), ("queued", False), (None, False)],
)
def test_an_owner_has_finished_only_if_airflow_says_so(
    monkeypatch: pytest.MonkeyPatch, state: str | None, finished: bool
) -> None:
    asked = []

    def answer(dag_id: str, run_id: str) -> DagRunState:
        asked.append((dag_id, run_id))
        if state is None:
            raise RuntimeError("no such run")
        return DagRunState(state)

    monkeypatch.setattr(RuntimeTaskInstance, "get_dagrun_state", staticmethod(answer))
    assert owner_is_finished("expand_x/manual__a/b") is finished
    assert asked == [("expand_x", "manual__a/b")]


def test_a_shell_that_owns_the_lease_is_not_asked_for_in_airflow() -> None:
    assert not owner_is_finished("shell/host/123")


@pytest.mark.parametrize("found", [None, {"restore": 4.2}])
def test_pre_warming_is_skipped_where_it_cannot_be(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, float] | None
) -> None:
    monkeypatch.setattr(admin.PrewarmOperator, "run_owned", lambda *_: found)
    task = admin.PrewarmOperator(task_id="prewarm", application_file="application.yaml")
    if found is None:
        with pytest.raises(AirflowSkipException, match="not pre-warmed"):
            task.execute({})  # type: ignore[typeddict-item]
    else:
        assert task.execute({}) == found  # type: ignore[typeddict-item]


def operators_in(module: ModuleType) -> list[type[RescaleOperator]]:
    """The operators that a module defines."""
    return [kind for kind in vars(module).values() if getattr(kind, "__module__", "") == module.__name__]


@pytest.mark.parametrize("kind", [*operators_in(admin), *operators_in(closing)])
def test_every_operator_takes_keywords_only_and_documents_its_parameters(kind: type[RescaleOperator]) -> None:
    with pytest.raises(TypeError):
        kind("application.yaml")  # type: ignore[misc]
    assert kind.__doc__
    assert "application_file" in kind.template_fields
