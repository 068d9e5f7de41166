"""The answer of a person about the cutover is kept while the brokers, or the application file, are away."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.timezone import utcnow
from kafka_rescale.airflow.dags.expansion_tasks import ExpansionTasks
from kafka_rescale.airflow.hooks.rescale import missing
from kafka_rescale.airflow.operators import approval as approval_module
from kafka_rescale.airflow.operators.approval import CutoverApprovalOperator
from kafka_rescale.core.errors import ClusterOutage, NotLetIn, Outage, Refused, Unreadable
from kafka_rescale.operations.application import load
from kafka_rescale.operations.application.load import load_application, topology_of
from kafka_rescale.operations.cutover import persistence
from kafka_rescale.operations.expansion import switch as operation

from tests.support.application_files import write_application

WORDS = {"found": "a", "expected": "b", "remedy": "c"}
RUN: Any = {"dag_run": SimpleNamespace(dag_id="expand_orders-app", run_id="r")}
APPROVED: dict[str, Any] = {
    "chosen_options": ["Approve"],
    "params_input": {},
    "responded_at": utcnow(),
    "responded_by_user": {"id": "1", "name": "ada"},
    "timedout": False,
}


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CutoverApprovalOperator:
    monkeypatch.setattr(approval_module.KafkaRescaleHook, "connection", lambda _: None)
    monkeypatch.setattr(CutoverApprovalOperator, "execute", lambda *_: pytest.fail("it has asked again"))
    monkeypatch.setattr(persistence, "FIRST_PAUSE_SECONDS", 0.0)
    file = write_application(tmp_path, max_wait_seconds=86_400)
    application = load_application(file)
    tasks = ExpansionTasks(application, str(file), topology_of(application))
    (found,) = (task for task in tasks.tasks() if task.task_id == "approve_cutover")
    made = tasks.operator(found)
    assert isinstance(made, CutoverApprovalOperator)
    return made


def failing(*errors: Exception, then: Callable[..., Any] = lambda *_, **__: None) -> Callable[..., Any]:
    """A stand-in that raises each of the errors, and then does what it stands for."""
    left = list(errors)

    def call(*arguments: Any, **words: Any) -> Any:
        if left:
            raise left.pop(0)
        return then(*arguments, **words)

    return call


@pytest.mark.parametrize(
    "error", [ClusterOutage("control", **WORDS), NotLetIn("control", **WORDS)], ids=["away", "not let in"]
)
def test_an_approval_is_noted_when_the_brokers_answer_again(
    task: CutoverApprovalOperator, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(persistence, "REFUSAL_SECONDS", -1)
    monkeypatch.setattr(operation, "approve", failing(error, error))
    assert task.execute_complete(RUN, APPROVED)["chosen_options"] == ["Approve"]


def test_it_is_noted_when_airflow_finds_the_connection_again(
    task: CutoverApprovalOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval_module.KafkaRescaleHook, "connection", failing(missing("k"), missing("k")))
    monkeypatch.setattr(operation, "approve", lambda *_, **__: None)
    assert task.execute_complete(RUN, APPROVED)["chosen_options"] == ["Approve"]


def test_it_is_noted_when_the_file_can_be_read_again(
    task: CutoverApprovalOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = [Unreadable("file", **WORDS)] * 2
    monkeypatch.setattr(load, "load_application", failing(*away, then=load_application))
    monkeypatch.setattr(operation, "approve", lambda *_, **__: None)
    assert task.execute_complete(RUN, APPROVED)["chosen_options"] == ["Approve"]


def test_it_is_tried_no_longer_than_the_file_lets_the_switch_wait(
    task: CutoverApprovalOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert task.response_timeout == timedelta(days=1)
    task.response_timeout = timedelta(0)
    monkeypatch.setattr(operation, "approve", failing(*[ClusterOutage("control", **WORDS)] * 9))
    with pytest.raises(Outage):
        task.execute_complete(RUN, APPROVED)
    Path(task.application_file).unlink()
    with pytest.raises(Unreadable):
        task.execute_complete(RUN, APPROVED)


def test_what_is_refused_is_not_tried_again(
    task: CutoverApprovalOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "approve", failing(Refused("switch", **WORDS)))
    with pytest.raises(Refused):
        task.execute_complete(RUN, APPROVED)
