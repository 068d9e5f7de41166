"""Airflow's tasks of stream threads, run without Airflow. Each submits its job by a real ``spark-submit``."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.operators.process import ProcessOperator
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.kafka.client.connection import KafkaConnection

ROOT = Path(__file__).resolve().parents[3]
DAG, RUN_ID = "process_threads", "run"
RUN = f"{DAG}/{RUN_ID}"
RETRIES = 2


def connections(monkeypatch: pytest.MonkeyPatch, kafka: KafkaConnection, **masters: str) -> None:
    """Declare Airflow's connections.

    :param masters: Spark's masters, by the ids of their connections.
    """
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    extra = json.dumps({"conn_type": "kafka", "extra": dict(kafka.config)})
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_X", extra)
    for name, master in masters.items():
        spark = json.dumps({"conn_type": "spark", "host": master})
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", spark)


def thread_operator(application: PipelineApplication, thread: str, spark: str = "spark_x") -> ProcessOperator:
    """The task of one thread at level 1. It has already read the application's file."""
    made = ProcessOperator(
        task_id="process_1",
        application_file="read before",
        application_id=application.application_id,
        level=1,
        thread=thread,
        kafka_conn_id="kafka_x",
        conn_id=spark,
        conf={"spark.ui.enabled": "false"},
        driver_memory="512m",
    )
    made.__dict__["_declared"] = application
    return made


def attempt(number: int) -> Any:
    """The context of one attempt at such a task. There are at most three attempts."""
    run = SimpleNamespace(dag_id=DAG, run_id=RUN_ID, run_type="scheduled")
    return {"dag_run": run, "ti": SimpleNamespace(try_number=number, max_tries=RETRIES), "params": {}}
