"""The operators and sensors in DAGs of one's own, which have neither our default arguments nor our task ids."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, BaseOperator, ExceptionRetryPolicy
from airflow.sdk.exceptions import TaskAwaitingInput
from kafka_rescale.airflow.operators.admin import ExpandStageOperator, PlanOperator
from kafka_rescale.airflow.operators.approval import CutoverApprovalOperator, OptionalApprovalOperator
from kafka_rescale.airflow.operators.client_job import ClientJobOperator
from kafka_rescale.airflow.operators.closing import PaceOperator, RetireOperator
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator
from kafka_rescale.airflow.page_link import ApplicationPageLink
from kafka_rescale.airflow.page_path import page_path
from kafka_rescale.airflow.retries import APPROVAL_RETRY_POLICY, RETRY_POLICY
from kafka_rescale.airflow.sensors.lag_gate import LagGateSensor
from kafka_rescale.core.errors import InvalidInput, Refused

from tests.support.application_files import write_application

OTHER_POLICY = ExceptionRetryPolicy(rules=[])
OF_AIRFLOW = {
    "OptionalApprovalOperator": {"subject": "?"},
    "MemberExpansionOperator": {"trigger_dag_id": "expand_a"},
}
"""What classes of Airflow require, by the class that is made from them."""
RUN: Any = {"dag_run": SimpleNamespace(dag_id="own", run_id="1", run_after=datetime.now(UTC))}
TAKE_A_JOB = (RescaleSparkSubmitOperator, ClientJobOperator)


def classes() -> Iterator[type[BaseOperator]]:
    """Yield every operator and sensor of the reference."""
    for package in ("operators", "sensors"):
        path = f"kafka_rescale.airflow.{package}"
        for module in pkgutil.iter_modules(import_module(path).__path__):
            for _, found in inspect.getmembers(import_module(f"{path}.{module.name}"), inspect.isclass):
                if found.__module__ == f"{path}.{module.name}" and issubclass(found, BaseOperator):
                    yield found


def made(found: type[BaseOperator]) -> BaseOperator:
    """Make a task of a class, with a text for each argument that it requires."""
    ours = [
        base for base in found.__mro__ if base.__module__.startswith("kafka_rescale") and "__init__" in vars(base)
    ]
    parameters = [
        p for base in ours for p in inspect.signature(inspect.unwrap(vars(base)["__init__"])).parameters.values()
    ]
    taken: dict[str, Any] = {p.name: "1" for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty}
    if found not in TAKE_A_JOB:
        taken.pop("job", None)
    for base in found.__mro__:
        taken |= OF_AIRFLOW.get(base.__name__, {})
    return found(task_id="t", **taken)


@pytest.mark.parametrize("found", classes(), ids=lambda found: found.__name__)
def test_what_needs_a_person_is_not_tried_again(found: type[BaseOperator]) -> None:
    assert made(found).retry_policy in {RETRY_POLICY, APPROVAL_RETRY_POLICY}


def test_a_policy_of_the_dag_stays() -> None:
    with DAG("own", schedule=None, default_args={"retry_policy": OTHER_POLICY}):
        task = LagGateSensor(task_id="gate", application_id="a", kafka_config_id="k", acceptable_lag=1)
    assert task.retry_policy is OTHER_POLICY


def test_a_plan_without_the_task_that_it_reads_says_which_one_it_needs(tmp_path: Path) -> None:
    task = PlanOperator(task_id="plan", application_file=str(write_application(tmp_path)), only_show=True)
    context: Any = {"ti": SimpleNamespace(xcom_pull=lambda task_ids: None), "params": {}}
    with pytest.raises(InvalidInput, match="found no result of a task `preflight`"):
        task.execute(context)


class TestRetirement:
    @pytest.fixture(autouse=True)
    def _recorded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: dict[str, object] = {}
        monkeypatch.setattr(RetireOperator, "run_owned", lambda *_, **options: self.asked.update(options))

    def retire(self, directory: Path, params: dict[str, Any], **arguments: Any) -> None:
        file = write_application(directory)
        task = RetireOperator(task_id="retire", application_file=str(file), **arguments)
        task.execute({**RUN, "params": params})

    @pytest.mark.parametrize("dry_run", [True, "True", "", "perhaps"])
    def test_only_a_clear_no_is_no_dry_run(self, tmp_path: Path, dry_run: object) -> None:
        self.retire(tmp_path, {}, dry_run=dry_run)
        assert self.asked["dry_run"] is True

    @pytest.mark.parametrize("dry_run", [False, "False"])
    def test_it_takes_what_its_task_says_before_what_the_form_says(self, tmp_path: Path, dry_run: object) -> None:
        form = {"dry_run": True, "confirm": "another"}
        self.retire(tmp_path, form, dry_run=dry_run, confirm="orders-app")
        assert self.asked["dry_run"] is False
        with pytest.raises(Refused, match="no confirmation"):
            self.retire(tmp_path, form, dry_run=dry_run)

    @pytest.mark.parametrize(("arguments", "missing"), [({}, "dry_run"), ({"dry_run": False}, "confirm")])
    def test_without_either_it_says_what_is_missing(
        self, tmp_path: Path, arguments: dict[str, Any], missing: str
    ) -> None:
        with pytest.raises(InvalidInput, match=f"neither `{missing}` nor a param of that name"):
            self.retire(tmp_path, {}, **arguments)
        assert self.asked == {}


@pytest.mark.parametrize("limit", [0, "0", -1, "None", "fast"])
def test_a_limit_that_is_none_is_not_taken_for_no_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str | int
) -> None:
    said: list[object] = []
    monkeypatch.setattr("kafka_rescale.operations.expansion.pace.say_pace", lambda *_, **__: said.append(1))
    monkeypatch.setattr(PaceOperator, "connection", lambda *_: None)
    file = str(write_application(tmp_path))
    task = PaceOperator(task_id="pace", application_file=file, action="limit", bytes_per_second=limit)
    with pytest.raises(InvalidInput, match="expected 1 or more bytes per second, or nothing for no limit"):
        task.execute(RUN)
    assert said == []


def test_the_link_leads_to_the_application_of_the_task_whatever_its_dag_is_called(tmp_path: Path) -> None:
    file = str(write_application(tmp_path))
    gate = LagGateSensor(task_id="g", application_id="orders-app", kafka_config_id="k", acceptable_lag=1)
    approval = OptionalApprovalOperator(task_id="a", enabled_by="x", subject="?", cutover_of="orders-app")
    for task in (gate, approval, ExpandStageOperator(task_id="e", application_file=file, stage=1)):
        for dag_id in ("nightly_rescale", "expand_chain_all"):
            link = ApplicationPageLink().get_link(task, ti_key=SimpleNamespace(dag_id=dag_id))  # type: ignore[arg-type]
            assert link == page_path("orders-app"), (task, dag_id)


def test_the_link_of_a_file_that_is_away_leads_where_the_dag_says(tmp_path: Path) -> None:
    task = ExpandStageOperator(task_id="e", application_file=str(tmp_path / "away.yaml"), stage=1)
    key: Any = SimpleNamespace(dag_id="expand_orders-app")
    assert ApplicationPageLink().get_link(task, ti_key=key) == page_path("orders-app")


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (("all.gate_all", "compare"), "**No lag and no proof are shown here**"),
        (("gate_all", "compare"), "**No proof is shown here**"),
        (("gate_all", "prove"), ""),
        (("rehearse",), ""),
    ],
    ids=str,
)
def test_an_approval_of_the_cutover_says_which_evidence_it_has_not_found(
    before: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: dict[str, Any] = {}
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", shown.update)
    monkeypatch.setattr(CutoverApprovalOperator, "_when", lambda *_: "")
    with DAG("own", schedule=None):
        task = CutoverApprovalOperator(task_id="ask", enabled_by="x", subject="?", body="-", application_file="f")
        [EmptyOperator(task_id=each) for each in before] >> task
    ti = SimpleNamespace(id="1", dag_id="own", xcom_pull=lambda task_ids: None)
    context: Any = {"params": {"x": True}, "task_instance": ti, "ti": ti}
    with pytest.raises(TaskAwaitingInput):
        task.execute(context)
    assert shown["body"].startswith(told)
    assert ("shown here**" in shown["body"]) is bool(told)
