"""Airflow takes any field of a run, and passes over those that it does not know. The first task refuses them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.definitions.param import process_params
from kafka_rescale.core.errors import InvalidInput

from tests.support.airflow.dag_bags import parsed
from tests.support.application_files import write_application
from tests.support.words_pipeline import write_pipeline

SETTING = "AIRFLOW__CORE__DAG_RUN_CONF_OVERRIDES_PARAMS"


@pytest.fixture
def dags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, DAG]:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    write_application(tmp_path, chain="all", snapshots={"location": str(tmp_path)})
    write_pipeline(tmp_path)
    return parsed().dags


def begin(dag: DAG, conf: dict[str, Any] | None) -> None:
    """Let the first task of a run begin as Airflow does, up to its own work."""
    task = next(each for each in dag.tasks if not each.upstream_task_ids)
    params = process_params(dag, task, conf, suppress_exception=False)
    run = SimpleNamespace(dag_id=dag.dag_id, run_id="r", conf=conf)
    assert task._pre_execute_hook is not None
    task._pre_execute_hook({"dag": dag, "dag_run": run, "params": params})


@pytest.mark.parametrize(
    ("dag_id", "conf"),
    [
        ("expand_orders-app", {"target": 8, "dry-run": True}),
        ("expand_chain_all", {"dry-run": True}),
        ("retire_orders-app", {"confirm": "orders-app", "dry-run": True}),
        ("pace_orders-app", {"action": "limit", "dry-run": 1_000_000}),
        ("switch_orders-app", {"action": "postpone", "dry-run": "2099-12-05T02:00:00+01:00"}),
        ("accept_orders-app", {"findings": ["a"], "reason": "b", "dry-run": True}),
        ("snapshot_orders-app", {"dry-run": True}),
        ("process_words", {"dry-run": True}),
    ],
)
def test_a_misspelt_field_is_named_before_anything_is_touched(
    dags: dict[str, DAG], dag_id: str, conf: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput, match=rf"run {dag_id}/r: found `dry-run`, .*; expected .*`.*again"):
        begin(dags[dag_id], conf)


def test_the_error_names_the_fields_that_there_are(dags: dict[str, DAG]) -> None:
    with pytest.raises(InvalidInput, match=r"expected only fields of its form: `action`, `until`, `reason`\."):
        begin(dags["switch_orders-app"], {"action": "postpone", "untill": None})


def test_a_run_with_fields_of_the_form_begins_and_so_does_one_without(dags: dict[str, DAG]) -> None:
    begin(dags["expand_orders-app"], {"target": 8, "dry_run": True})
    # Airflow's own TriggerDagRunOperator adds the second.
    begin(dags["expand_orders-app"], {"target": None, "openlineage": {"parentRunId": "x"}})
    for conf in (None, {}):
        begin(dags["expand_orders-app"], conf)


def test_an_airflow_that_passes_over_all_fields_is_found(
    dags: dict[str, DAG], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dry run would be a real one."""
    monkeypatch.setenv(SETTING, "False")
    with pytest.raises(
        InvalidInput, match=r"found `dry_run` = True, .*; expected .*dag_run_conf_overrides_params"
    ):
        begin(dags["expand_orders-app"], {"dry_run": True})
    begin(dags["expand_orders-app"], {"dry_run": False})


def test_no_field_keeps_a_rollback_from_its_work(dags: dict[str, DAG]) -> None:
    """Perhaps no generation runs. Its form has only a reason, so no field can make it do something else."""
    assert all(task._pre_execute_hook is None for task in dags["rollback_orders-app"].tasks)
    expand = dags["expand_orders-app"]
    assert {task.task_id for task in expand.tasks if task._pre_execute_hook is not None} == {"preflight"}


def test_every_form_of_the_project_is_looked_at(dags: dict[str, DAG]) -> None:
    forms = [dag for dag in dags.values() if dag.params and not dag.dag_id.startswith("rollback_")]
    first = [task for dag in forms for task in dag.tasks if not task.upstream_task_ids]
    unlooked = {f"{task.dag_id}/{task.task_id}" for task in first if task._pre_execute_hook is None}
    assert unlooked == {"expand_chain_all/preflight.unpaused_dags"}, "it touches nothing"
