"""On a standalone Spark master, a job that lasts for days leaves cores for the jobs beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.airflow.dags.expansion_tasks import spark_job
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator
from kafka_rescale.airflow.spark.cores import fitting, room_needed
from kafka_rescale.core.application.streams import Application
from kafka_rescale.operations.application.load import load_application

from tests.support.airflow.dag_bags import parsed
from tests.support.application_files import CHAIN, write_application

MASTER = "spark://m:7077"
REPARTITIONED: dict[str, Any] = {
    "inputs": [{"topic": "orders", "policy": "repartitioned", "isolation_level": "read_committed"}],
    "lifecycle": {**CHAIN["lifecycle"], "start": "start {application_id} {input:orders}"},
}


def application(directory: Path, **fields: Any) -> Application:
    return load_application(write_application(directory, **fields))


def cores_of(application: Application, job: str) -> str | None:
    found: str | None = (spark_job(application, job).conf or {}).get("spark.cores.max")
    return found


@pytest.mark.parametrize(
    ("fields", "catch_up", "others"),
    [
        ({}, "1", None),
        ({"copy_cores": 3}, "3", None),
        ({"spark_conf": {"spark.cores.max": "4"}}, "4", "4"),
        ({"spark_conf": {"spark.cores.max": "4"}, "copy_cores": 2}, "2", "4"),
    ],
)
def test_the_job_that_lasts_until_the_switch_has_a_limit_and_leaves_the_rest_to_the_proof(
    tmp_path: Path, fields: dict[str, Any], catch_up: str, others: str | None
) -> None:
    declared = application(tmp_path, **fields)
    assert cores_of(declared, "catch_up") == catch_up
    assert {cores_of(declared, job) for job in ("restore", "warm_up", "prove", "verify")} == {others}


def test_the_task_of_the_dag_has_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    write_application(tmp_path)
    dag = parsed().dags["expand_orders-app"]
    assert dag.get_task("catch_up").conf == {"spark.cores.max": "1"}
    assert dag.get_task("prove").conf == {}


@pytest.mark.parametrize(
    ("master", "size", "fitted"),
    [(MASTER, "4", "1"), (MASTER, "1", "1"), ("yarn", "4", "4"), ("local[2]", "4", "4")],
)
def test_an_executor_is_not_larger_than_the_limit_or_a_standalone_master_would_launch_none(
    master: str, size: str, fitted: str
) -> None:
    conf = {"spark.cores.max": "1", "spark.executor.cores": size}
    assert fitting(conf, master) == {**conf, "spark.executor.cores": fitted}
    assert fitting({"spark.executor.cores": size}, master) == {"spark.executor.cores": size}


def test_the_operator_submits_executors_that_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    hooks: list[Any] = []
    monkeypatch.setattr(SparkSubmitHook, "submit", lambda hook, _: hooks.append(hook))
    monkeypatch.setattr(RescaleSparkSubmitOperator, "_package_zip", staticmethod(lambda _: "package.zip"))
    module = "kafka_rescale.airflow.operators.spark_submit"
    monkeypatch.setattr(f"{module}.journal_of", lambda *_: None)
    monkeypatch.setattr(f"{module}.result_of", lambda *_: {})
    kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": "localhost:1"}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
    _connect(monkeypatch, MASTER)
    declared = application(tmp_path, spark_conf={"spark.executor.cores": "4"})
    run: Any = type("Run", (), {"dag_id": "expand_x", "run_id": "r"})
    attempt: Any = type("Attempt", (), {"try_number": 1})
    spark_job(declared, "catch_up").execute({"dag_run": run, "ti": attempt})
    command = hooks[0]._build_spark_submit_command("catch_up.py")
    assert {"spark.cores.max=1", "spark.executor.cores=1"} <= {*command}


def test_preflight_says_how_much_room_a_standalone_cluster_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _connect(monkeypatch, MASTER)
    told = room_needed(application(tmp_path))
    assert f"cores of {MASTER}: catch_up 1. So it needs 2 cores or more, and memory" in told
    assert "executors of 1g" in told
    with_bridge = application(
        tmp_path, **REPARTITIONED, bridge_cores=2, spark_conf={"spark.executor.memory": "3g"}
    )
    told = room_needed(with_bridge)
    assert "catch_up 1, bridge 2. So it needs 4 cores or more, and memory" in told
    assert "executors of 3g" in told
    assert room_needed(application(tmp_path, mode="in_place")) == ""
    _connect(monkeypatch, "local[2]")
    assert room_needed(with_bridge) == ""


def _connect(monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    connection = json.dumps({"conn_type": "spark", "host": master})
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", connection)
