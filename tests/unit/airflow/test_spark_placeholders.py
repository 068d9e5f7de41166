"""Spark replaces ``{{APP_ID}}`` and ``{{EXECUTOR_ID}}`` in its own settings. Airflow's templates look the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator

from tests.support.airflow.dag_bags import parsed
from tests.support.application_files import write_application
from tests.support.words_pipeline import write_pipeline

CONF = {"spark.executor.extraJavaOptions": "-Xlog:gc:file=/tmp/{{APP_ID}}-{{EXECUTOR_ID}}.gc", "spark.x": "{#1"}
CLIENTS = [{"client.id": name, "state.dir": f"/{name}"} for name in ("east", "west")]
CONTEXT: dict[str, Any] = {
    "params": {"acceptable_recovery_lag": None, "verify_whole": False, "from_scratch": False}
}
MAPPED = {"warm_up_processors": "client", "process_1": "thread", "process_2": "thread", "keep_warm": "client"}


def test_the_settings_of_the_file_reach_spark_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    write_application(tmp_path, snapshots={"location": str(tmp_path)}, spark_conf=CONF)
    write_pipeline(tmp_path, **{"state.dir": None, "clients": CLIENTS}, spark_conf=CONF)
    tasks = [task for dag in parsed().dags.values() for task in dag.tasks]
    jobs = [t for t in tasks if issubclass(getattr(t, "operator_class", type(t)), RescaleSparkSubmitOperator)]
    for task in jobs:
        job = task.unmap({MAPPED[task.task_id]: "east"}) if task.is_mapped else task
        job.render_template_fields(CONTEXT)
        assert CONF.items() <= job.conf.items(), job.task_id
    made = {task.task_id.rpartition(".")[2] for task in jobs}
    assert made >= {"restore", "warm_up", "catch_up", "prove", "verify", "bridge", "snapshot", *MAPPED}
