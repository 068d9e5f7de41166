"""``process_<application>``: one `spark-submit` for each thread and level, one level after the other."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.operators.process import ProcessOperator
from kafka_rescale.core.processing.request import ProcessRequest
from kafka_rescale.operations import processing

from tests.support.words_pipeline import write_pipeline

ROOT = Path(__file__).resolve().parents[2]
CONTEXT: Any = {
    "dag_run": SimpleNamespace(dag_id="process_words", run_id="scheduled__1", run_type="scheduled"),
    "ti": SimpleNamespace(try_number=2),
}


def parsed(directory: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> dict[str, Any]:
    from airflow.dag_processing.dagbag import DagBag

    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(directory))
    write_pipeline(directory, **changes)
    bag = DagBag(ROOT / "dags")
    assert bag.import_errors == {}
    return dict(bag.dags)


def test_a_pipeline_has_this_dag_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dags = parsed(tmp_path, monkeypatch, schedule="*/10 * * * *")
    assert set(dags) == {"process_words"}
    dag = dags["process_words"]
    assert dag.max_active_runs == 1
    assert dag.catchup is False
    assert "Sub-topology: 1" in (dag.doc_md or "")


def test_levels_follow_each_other_and_threads_are_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dag = parsed(tmp_path, monkeypatch)["process_words"]
    assert dag.get_task("assign").downstream_task_ids == {"process_1", "process_2"}
    assert dag.get_task("process_1").downstream_task_ids == {"process_2"}
    assert dag.get_task("process_1").is_mapped


def test_it_can_run_continuously(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dag = parsed(tmp_path, monkeypatch, schedule="@continuous")["process_words"]
    assert type(dag.timetable).__name__ == "ContinuousTimetable"


def test_a_pipeline_that_can_not_be_imported_has_a_dag_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dags = parsed(tmp_path, monkeypatch, pipeline="no_such_module:pipeline")
    assert dags["process_words"].task_ids == ["invalid"]
    assert "No module named" in (dags["process_words"].doc_md or "")


def operator(tmp_path: Path) -> ProcessOperator:
    return ProcessOperator(
        task_id="process_2",
        application_file=str(write_pipeline(tmp_path)),
        application_id="words",
        level=2,
        thread="words-StreamThread-1",
        kafka_conn_id="kafka_x",
        conn_id="spark_x",
    )


def test_the_job_is_told_its_thread_and_level(tmp_path: Path) -> None:
    arguments = operator(tmp_path)._arguments(CONTEXT)
    assert arguments[:6] == ["--application", "words", "--run", "process_words/scheduled__1", "--attempt", "2"]
    request = ProcessRequest.model_validate(json.loads(arguments[7]))
    assert (request.thread, request.level) == ("words-StreamThread-1", 2)
    assert request.key == "process/2/words-StreamThread-1"


def test_no_driver_is_started_where_there_is_nothing_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook

    monkeypatch.setattr(KafkaRescaleHook, "connection", lambda self: None)
    monkeypatch.setattr(processing, "is_idle", lambda *_: True)
    assert operator(tmp_path).execute(CONTEXT) == {}
