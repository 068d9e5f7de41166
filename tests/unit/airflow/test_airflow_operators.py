"""Approvals, retries and owners: what decides whether a run goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.exceptions import HITLRejectException
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, RetryAction
from airflow.sdk.exceptions import AirflowSkipException, TaskAwaitingInput
from kafka_rescale.airflow.operators import admin, closing
from kafka_rescale.airflow.operators import approval as approval_module
from kafka_rescale.airflow.operators.approval import OptionalApprovalOperator
from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.operators.cutover import CutoverOperator
from kafka_rescale.airflow.retries import RETRY_POLICY
from kafka_rescale.airflow.runs import owner_of
from kafka_rescale.core.control.journal import Phase
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

from tests.support.application_files import write_application
from tests.support.plans import plan_for

WORDS = {"found": "a", "expected": "b", "remedy": "c"}


BEFORE = ("stage_1.restore", "stage_1.expand", "prewarm")


def approval(**arguments: Any) -> OptionalApprovalOperator:
    return OptionalApprovalOperator(task_id="t", enabled_by="approve_plan", subject="?", body="-", **arguments)


def test_an_approval_that_nobody_asked_for_succeeds_at_once() -> None:
    assert approval().execute({"params": {"approve_plan": False}}) is None  # type: ignore[typeddict-item]


def test_an_approval_that_was_asked_for_waits_for_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **_: None)
    asked = asked_in_a_run({})
    with pytest.raises(TaskAwaitingInput):
        asked()


@pytest.mark.parametrize("phase", [None, *Phase])
def test_a_cutover_that_has_begun_is_not_asked_about_again(
    monkeypatch: pytest.MonkeyPatch, phase: Phase | None
) -> None:
    """A run that continues past the promotion has to start green: nobody runs while a person is waited for."""
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **_: None)
    monkeypatch.setattr(approval_module.KafkaRescaleHook, "connection", lambda _: None)
    monkeypatch.setattr(approval_module, "phase_of", lambda _, application: {"orders": phase}[application])
    asked = asked_in_a_run({}, cutover_of="orders", kafka_config_id="k")
    if phase in {None, Phase.WARMING, Phase.ROLLING_BACK, Phase.ROLLED_BACK}:
        with pytest.raises(TaskAwaitingInput):
            asked()
    else:
        asked()


def asked_in_a_run(results: dict[str, Any], **arguments: Any) -> Callable[[], OptionalApprovalOperator]:
    """Ask behind tasks that have left these results; gives the task."""
    with DAG("expand_orders", schedule=None):
        task = approval(**arguments)
        [EmptyOperator(task_id=job) for job in BEFORE] >> task
    pull = {job: results.get(job) for job in BEFORE}
    ti = SimpleNamespace(id="1", dag_id="expand_orders", xcom_pull=lambda task_ids: pull[task_ids])
    context: Any = {"params": {"approve_plan": True}, "task_instance": ti, "ti": ti}

    def ask() -> OptionalApprovalOperator:
        task.execute(context)
        return task

    return ask


def test_who_approves_sees_what_was_copied_and_the_way_to_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: dict[str, Any] = {}
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", shown.update)
    copied = {"state": "done", "records": 12345, "seeded": 12000, "bytes": 2_000_000, "seconds": 3.5}
    with pytest.raises(TaskAwaitingInput):
        asked_in_a_run({"stage_1.restore": copied, "stage_1.expand": ["created a topic"]})()
    assert "| stage_1.restore | done | 12,345 | 12,000 | 2.0 | 3.5 |" in shown["body"]
    assert "stage_1.expand" not in shown["body"]
    assert "(/plugin/kafka-rescale/kafka-rescale/?application=orders)" in shown["body"]


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"restore": 12.34, "stop": 1.0}, "green restored its stores for 12.3 s ahead of the pause"),
        ({}, "green restores all of its stores within the pause"),
        (None, "green restores all of its stores within the pause"),
    ],
)
def test_who_approves_sees_whether_the_pause_grows_with_the_state(
    result: dict[str, float] | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: dict[str, Any] = {}
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", shown.update)
    with pytest.raises(TaskAwaitingInput):
        asked_in_a_run({"prewarm": result})()
    assert told in shown["body"]


def test_who_approves_the_plan_sees_what_preflight_found_worth_knowing(monkeypatch: pytest.MonkeyPatch) -> None:
    pushed: dict[str, str] = {}
    monkeypatch.setattr(admin.PlanOperator, "_begin", lambda *_: None)
    found = {"plan": plan_for("shop").model_dump(mode="json"), "noop": False, "messages": ["one.", "two."]}
    ti = SimpleNamespace(
        xcom_pull=lambda task_ids: found, xcom_push=lambda key, value: pushed.update({key: value})
    )
    task = admin.PlanOperator(task_id="plan", application_file="x.yaml", only_show=False)
    task.execute({"ti": ti})  # type: ignore[typeddict-item]
    table, _, remarks = pushed["table"].partition("\n\n* ")
    assert table.endswith(" |")
    assert remarks == "one.\n* two."
    found["messages"] = []
    task.execute({"ti": ti})  # type: ignore[typeddict-item]
    assert pushed["table"].strip() == table


def test_a_run_may_limit_the_pause_otherwise_than_the_file(tmp_path: Path) -> None:
    file = str(write_application(tmp_path, max_pause_seconds=120))
    of_the_run = CutoverOperator(task_id="a", application_file=file, max_pause_seconds="30")
    of_the_file = CutoverOperator(task_id="b", application_file=file, max_pause_seconds="")
    assert of_the_run.application().max_pause_seconds == 30
    assert of_the_file.application().max_pause_seconds == 120


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


def test_an_outage_within_a_pause_is_retried_by_the_delays_of_its_task() -> None:
    """A delay of the policy's own would stand in for them."""
    decision = RETRY_POLICY.evaluate(Outage("thing", **WORDS), try_number=9, max_tries=12)
    assert (decision.action, decision.retry_delay) == (RetryAction.RETRY, None)


def test_the_owner_is_the_run_and_not_its_date() -> None:
    run = SimpleNamespace(dag_id="expand_x", run_id="manual__2", logical_date=None)
    assert owner_of({"dag_run": run}) == "expand_x/manual__2"


@pytest.mark.parametrize("found", [None, {"restore": 4.2}])
def test_pre_warming_is_skipped_where_it_cannot_be(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, float] | None
) -> None:
    monkeypatch.setattr(admin.PrewarmOperator, "run_owned", lambda *_, **__: found)
    task = admin.PrewarmOperator(task_id="prewarm", application_file="application.yaml", local_state_deleted=False)
    if found is None:
        with pytest.raises(AirflowSkipException, match="not pre-warmed"):
            task.execute({})  # type: ignore[typeddict-item]
    else:
        assert task.execute({}) == found  # type: ignore[typeddict-item]


@pytest.mark.parametrize(("text", "deleted"), [("True", True), ("False", False)])
def test_the_word_that_local_state_is_gone_is_text_by_then(
    monkeypatch: pytest.MonkeyPatch, text: str, *, deleted: bool
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(
        admin.PrewarmOperator, "run_owned", lambda *_, local_state_deleted: asked.append(local_state_deleted) or {}
    )
    task = admin.PrewarmOperator(task_id="prewarm", application_file="application.yaml", local_state_deleted=text)
    assert task.execute({}) == {}  # type: ignore[typeddict-item]
    assert asked == [deleted]


def operators_in(module: ModuleType) -> list[type[RescaleOperator]]:
    """The operators that a module defines."""
    return [kind for kind in vars(module).values() if getattr(kind, "__module__", "") == module.__name__]


@pytest.mark.parametrize("kind", [*operators_in(admin), *operators_in(closing)])
def test_every_operator_takes_keywords_only_and_documents_its_parameters(kind: type[RescaleOperator]) -> None:
    with pytest.raises(TypeError):
        kind("application.yaml")  # type: ignore[misc]
    assert kind.__doc__
    assert "application_file" in kind.template_fields
