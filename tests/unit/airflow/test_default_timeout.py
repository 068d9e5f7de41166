"""Airflow's default timeout of tasks, which a platform sets for all DAGs, ends no job that lasts for days."""

from __future__ import annotations

from datetime import timedelta
from inspect import unwrap
from pathlib import Path

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import BaseOperator
from airflow.sdk.bases import operator

from tests.support.airflow.dag_bags import parsed
from tests.support.application_files import write_application
from tests.support.words_pipeline import write_pipeline

HOUR = timedelta(hours=1)
TELLS = [{"notifier": "tests.support.airflow.recorded_notices:RecordingNotifier", "arguments": {"file": "told"}}]
CLIENTS = [{"client.id": name, "state.dir": f"/{name}"} for name in ("east", "west")]


@pytest.fixture(autouse=True)
def _an_hour_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set what ``[core] default_task_execution_timeout`` sets when Airflow is imported."""
    monkeypatch.setitem(unwrap(BaseOperator.__init__).__kwdefaults__, "execution_timeout", HOUR)
    monkeypatch.setitem(operator.OPERATOR_DEFAULTS, "execution_timeout", HOUR)


def test_it_ends_no_task_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert EmptyOperator(task_id="another").execution_timeout == HOUR
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    alert = {"pause_alert_seconds": 60, "notifications": TELLS}
    write_application(tmp_path, snapshots={"location": str(tmp_path)}, chain="all", **alert)
    write_pipeline(tmp_path, **{"state.dir": None, "clients": CLIENTS})
    tasks = [task for dag in parsed().dags.values() for task in dag.tasks]
    made = {f"{task.dag_id}.{task.task_id}" for task in tasks}
    assert made > {"expand_orders-app.pause_alert", "expand_chain_all.orders-app", "keep_warm_words.keep_warm"}
    assert {f"{task.dag_id}.{task.task_id}" for task in tasks if task.execution_timeout} == set()
