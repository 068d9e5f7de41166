"""The log of a pipeline's tasks in Airflow warns of records that a run drops, or may drop for its order."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook
from kafka_rescale.airflow.operators.process import AssignOperator, ProcessOperator
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator
from kafka_rescale.cli import pipelines
from kafka_rescale.core.assignment.tasks import TaskId, Tasks
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.pipeline import STRING, Pipeline, StreamsBuilder, TimeWindows
from kafka_rescale.core.processing.autoscaling import NOT_LOOKED
from kafka_rescale.core.processing.rebalance import Member, Rebalance
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.processing import dead_threads, prepare

from tests.support.words_pipeline import write_pipeline

CONTEXT: Any = {
    "dag_run": SimpleNamespace(dag_id="process_words", run_id="scheduled__1", run_type="scheduled"),
    "ti": SimpleNamespace(try_number=1, max_tries=2),
    "params": {},
}
CONNECTION = KafkaConnection({"bootstrap.servers": "h:9"})
JOB = JobResult(job="process/2/words-StreamThread-1", run="run", attempt=1, state="done", dropped=1_300)


def hourly() -> Pipeline:
    builder = StreamsBuilder()
    lines = builder.stream("lines", key=STRING, value=STRING)
    grouped = lines.select_key(lambda key, value: value, key=STRING).group_by_key(name="by-word")
    grouped.windowed_by(TimeWindows(timedelta(hours=1))).count(store="hourly").to_stream().to("counted")
    return builder.build()


def assigned(readers: int) -> Processing:
    reader = next(part.id for part in hourly().sub_topologies() if "lines" in part.sources)
    tasks = [TaskId(reader, number) for number in range(readers)] + [TaskId(1 - reader, 0)]
    return Rebalance("run", 0, Tasks(dict.fromkeys(tasks, 0)), [Member("words", 1)]).of(None)


def warnings_of(operator: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What an operator warns of when it is executed."""
    found: list[str] = []
    monkeypatch.setattr(operator.log, "warning", lambda text, *arguments: found.append(text % arguments))
    operator.execute(CONTEXT)
    return found


@pytest.mark.parametrize(("readers", "hints"), [(1, 0), (2, 1)])
def test_assign_warns_of_windows_behind_what_several_tasks_write(
    readers: int, hints: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = SimpleNamespace(processing=assigned(readers), scaled=NOT_LOOKED)
    monkeypatch.setattr(AssignOperator, "connection", lambda *_: CONNECTION)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setattr(prepare, "prepare", lambda *_: done)
    file = write_pipeline(tmp_path, pipeline=f"{__name__}:hourly")
    found = warnings_of(AssignOperator(task_id="assign", application_file=str(file)), monkeypatch)
    assert sum("keeps windows (hourly) behind by-word-repartition" in text for text in found) == hints


def test_a_job_that_has_dropped_records_is_a_warning_of_its_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KafkaRescaleHook, "connection", lambda _: CONNECTION)
    monkeypatch.setattr(dead_threads, "take_over", lambda *_: None)
    monkeypatch.setattr(prepare, "is_idle", lambda *_: False)
    thread = {"thread": "words-StreamThread-1", "kafka_conn_id": "kafka_x", "conn_id": "spark_x"}
    file = str(write_pipeline(tmp_path))
    for result, warned in ((JOB, 1), (JOB.model_copy(update={"dropped": 0}), 0)):
        said = result.model_dump(mode="json")
        monkeypatch.setattr(RescaleSparkSubmitOperator, "execute", lambda *_, said=said: said)
        operator = ProcessOperator(
            task_id="process_2", application_file=file, application_id="words", level=2, **thread
        )
        found = warnings_of(operator, monkeypatch)
        assert sum(text.startswith("records dropped: 1,300. ") for text in found) == warned


def test_status_warns_of_what_the_latest_run_has_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = ControlState(processing=assigned(2), results={JOB.job: JOB})
    monkeypatch.setattr(pipelines, "connection_for", lambda *_: SimpleNamespace(check=lambda: None))
    monkeypatch.setattr(ControlTopic, "__init__", lambda *_: None)
    monkeypatch.setattr(ControlTopic, "read", lambda _: state)
    said = pipelines.pipeline_status(write_pipeline(tmp_path), None, None)
    assert said.data["dropped"] == 1_300
    assert said.closing.startswith("warning: records dropped: 1,300. ")
