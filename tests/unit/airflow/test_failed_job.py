"""The error of a task whose Spark job has failed: what this job has left, never what an earlier job had left."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowException
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.kafka.control import control_topic

from tests.support.expansion.gate_world import PLAN

JOURNAL = Journal(plan=PLAN, phase=Phase.STARTED)
RUN, TRY = "expand_x/manual__1", 2


def report(as_of_ms: int) -> dict[str, object]:
    findings = {"passed": False, "unaccepted": ["totals@0123456789ab"], "inputs": []}
    return {"promotion": JOURNAL.promotion, "as_of_ms": as_of_ms, **findings}


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The control topic; `left` is what the submitted job leaves there before it fails."""
    topic = SimpleNamespace(state=ControlState(journal=JOURNAL), left={})

    def submit(hook: SparkSubmitHook, application: str) -> None:
        topic.state = topic.state.model_copy(update=topic.left)
        raise AirflowException("spark-submit has failed")

    kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": "localhost:9092"}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_X", json.dumps(kafka))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_X", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setattr(control_topic, "ControlTopic", lambda *_: SimpleNamespace(read=lambda: topic.state))
    monkeypatch.setattr("kafka_rescale.airflow.operators.spark_submit.journal_of", lambda *_: None)
    monkeypatch.setattr(RescaleSparkSubmitOperator, "_package_zip", staticmethod(lambda directory: "package.zip"))
    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    return topic


def execute(job: str) -> None:
    task = RescaleSparkSubmitOperator(
        task_id="t", application_id="x", job=job, kafka_conn_id="kafka_x", conn_id="spark_x"
    )
    dag_id, run_id = RUN.split("/")
    context: Any = {
        "dag_run": SimpleNamespace(dag_id=dag_id, run_id=run_id),
        "ti": SimpleNamespace(try_number=TRY),
    }
    task.execute(context)


def test_findings_of_the_job_itself_are_final(control: SimpleNamespace) -> None:
    control.left = {"report": report(as_of_ms=1)}
    with pytest.raises(UnsafeState, match="Stop shop-g2"):
        execute("verify")
    control.left = {"report": report(as_of_ms=2)}
    with pytest.raises(UnsafeState, match="Stop shop-g2"):
        execute("verify")


def test_an_outage_of_verify_is_no_finding_whatever_an_earlier_job_has_found(control: SimpleNamespace) -> None:
    """A person has accepted the earlier findings, and cleared the task. Nobody has to stop green."""
    control.state = control.state.model_copy(update={"report": report(as_of_ms=1)})
    with pytest.raises(AirflowException, match="spark-submit has failed"):
        execute("verify")


@pytest.mark.parametrize("job", ["prove", "rehearse", "catch_up", "bridge"])
def test_any_other_job_names_the_attempt_that_has_failed(control: SimpleNamespace, job: str) -> None:
    failed = {"job": job, "run": RUN, "state": "failed", "detail": "UnsafeState: 3 findings"}
    for stale in ({"attempt": TRY - 1}, {"attempt": TRY, "run": "expand_x/manual__0"}):
        control.state = ControlState(journal=JOURNAL, results={job: JobResult.model_validate(failed | stale)})
        with pytest.raises(AirflowException, match="spark-submit has failed"):
            execute(job)
    control.left = {"results": {job: JobResult.model_validate(failed | {"attempt": TRY})}}
    with pytest.raises(UnsafeState, match="3 findings"):
        execute(job)
