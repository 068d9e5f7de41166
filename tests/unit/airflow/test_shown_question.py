"""Airflow keeps the first question of a run. A person must not approve one attempt by the question of another."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskAwaitingInput
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import HITLDetailRequestResult
from airflow.sdk.timezone import utcnow
from kafka_rescale.airflow.dags.expansion_tasks import ExpansionTasks
from kafka_rescale.airflow.operators import approval as approval_module
from kafka_rescale.airflow.operators.approval import OptionalApprovalOperator
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.switch import Order, Switch
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.operations.application.load import load_application, topology_of
from kafka_rescale.operations.expansion import switch as operation

from tests.support.application_files import write_application
from tests.support.plans import plan_for

NIGHTLY = {"windows": ["02:00-05:00"]}
MONDAY, FRIDAY = (Journal(plan=plan_for("orders-app", generation=each)) for each in (2, 3))
TI_ID = "01995d0e-0000-7000-8000-000000000000"


class Airflow:
    """Keeps the first question of a task instance, as the route of the execution API does."""

    def __init__(self) -> None:
        self.kept: Any = None

    def send(self, msg: Any) -> HITLDetailRequestResult:
        assert msg.assigned_users is not None, "the route refuses that"
        self.kept = self.kept or msg
        return HITLDetailRequestResult(**self.kept.model_dump(exclude={"type"}))


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Airflow:
    kept = Airflow()
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", kept, raising=False)
    monkeypatch.setattr(approval_module.KafkaRescaleHook, "connection", lambda _: None)
    monkeypatch.setattr(approval_module, "phase_of", lambda *_: Phase.WARMING)
    return kept


def made(directory: Path, task_id: str, **changes: Any) -> OptionalApprovalOperator:
    file = write_application(directory, **changes)
    application = load_application(file)
    tasks = ExpansionTasks(application, str(file), topology_of(application))
    (found,) = (task for task in tasks.tasks() if task.task_id == task_id)
    operator = tasks.operator(found)
    assert isinstance(operator, OptionalApprovalOperator)
    return operator


def context_of(journal: Journal) -> Any:
    run = SimpleNamespace(dag_id="expand_orders-app", run_id="r")
    plan = journal.plan.model_dump(mode="json")
    ti = SimpleNamespace(id=TI_ID, dag_id="d", xcom_pull=lambda task_ids: plan if task_ids == "plan" else None)
    params = {"approve_cutover": True, "approve_plan": True}
    return {"dag_run": run, "params": params, "ti": ti, "task_instance": ti}


def ask(operator: OptionalApprovalOperator, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = Switch.of(journal, None).begun(now_ms(), 86_400_000, None, None, asks=True)
    monkeypatch.setattr(operation, "begin_wait", lambda *_, **__: begun)
    operator.execute(context_of(journal))


@pytest.mark.parametrize("task", ["approve_plan", "approve_cutover"])
def test_a_cleared_run_does_not_wait_on_the_question_about_another_plan(
    airflow: Airflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    with pytest.raises(TaskAwaitingInput):
        ask(made(tmp_path, task), MONDAY, monkeypatch)
    with pytest.raises(UnsafeState, match="Trigger the expansion again instead of clearing its run"):
        ask(made(tmp_path, task), FRIDAY, monkeypatch)
    assert MONDAY.plan.fingerprint[:8] in airflow.kept.body


def test_a_cleared_run_does_not_wait_on_the_question_about_another_attempt(
    airflow: Airflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TaskAwaitingInput):
        ask(made(tmp_path, "approve_cutover"), MONDAY, monkeypatch)
    again = MONDAY.model_copy(update={"attempt": MONDAY.attempt + 1})
    with pytest.raises(UnsafeState, match=f"found a question about attempt {MONDAY.attempt} of plan"):
        ask(made(tmp_path, "approve_cutover"), again, monkeypatch)


def test_a_retry_in_the_same_attempt_asks_again_though_time_has_passed(
    airflow: Airflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short outage must not end a run of days. The question says when it was asked."""
    with pytest.raises(TaskAwaitingInput):
        ask(made(tmp_path, "approve_cutover"), MONDAY, monkeypatch)
    airflow.kept.body = airflow.kept.body.replace("*Asked ", "*Asked Mon ")
    with pytest.raises(TaskAwaitingInput):
        ask(made(tmp_path, "approve_cutover"), MONDAY, monkeypatch)


def test_a_question_of_an_earlier_version_is_asked_again(
    airflow: Airflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TaskAwaitingInput):
        ask(made(tmp_path, "approve_cutover"), MONDAY, monkeypatch)
    airflow.kept.body = "It names neither an attempt nor a plan."
    with pytest.raises(TaskAwaitingInput):
        ask(made(tmp_path, "approve_cutover"), FRIDAY, monkeypatch)


@pytest.mark.parametrize(
    ("windows", "fields", "order"),
    [
        (NIGHTLY, {"at": None}, Order.WINDOW),
        (None, {"when": "now", "at": None}, Order.NOW),
        (None, {"when": "in the window", "at": None}, Order.HOLD),
    ],
    ids=["windows were added", "were removed, and it says now", "were removed, and it names them"],
)
def test_an_answer_to_a_form_that_is_older_than_the_file_ends_no_run(
    airflow: Airflow,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    windows: Any,
    fields: dict[str, Any],
    order: Order,
) -> None:
    noted: dict[str, Any] = {}
    monkeypatch.setattr(operation, "approve", lambda *_, **words: noted.update(words))
    who = {"id": "1", "name": "ada"}
    event = {"chosen_options": ["Approve"], "params_input": fields, "responded_at": utcnow()}
    operator = made(tmp_path, "approve_cutover", cutover_windows=windows)
    operator.execute_complete(context_of(MONDAY), {**event, "responded_by_user": who, "timedout": False})
    assert noted["order"] is order
