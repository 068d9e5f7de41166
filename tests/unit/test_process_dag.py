"""``process_<application>``: one `spark-submit` for each thread and level, one level after the other."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.operators.process import AssignOperator, ProcessOperator, WarmUpProcessorsOperator
from kafka_rescale.core.control_records import ControlState
from kafka_rescale.core.processing.request import ProcessRequest, WarmUpRequest
from kafka_rescale.kafka.control_topic import ControlTopic
from kafka_rescale.operations import processing, processors

from tests.support.words_pipeline import write_pipeline

ROOT = Path(__file__).resolve().parents[2]
CONTEXT: Any = {
    "dag_run": SimpleNamespace(dag_id="process_words", run_id="scheduled__1"),
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
    assert dag.get_task("assign").downstream_task_ids == {"process_1", "process_2", "warm_up_processors"}
    assert dag.get_task("process_1").downstream_task_ids == {"process_2"}
    assert dag.get_task("process_1").is_mapped


def test_new_processors_warm_up_beside_the_run_which_does_not_wait_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dag = parsed(tmp_path, monkeypatch)["process_words"]
    assert dag.get_task("warm_up_processors").downstream_task_ids == set()
    assert dag.params["expand_processors"] is None


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


def test_no_driver_is_started_where_no_processor_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook

    monkeypatch.setattr(KafkaRescaleHook, "connection", lambda self: None)
    monkeypatch.setattr(ControlTopic, "__init__", lambda *_: None)
    monkeypatch.setattr(ControlTopic, "read", lambda _: ControlState())
    warming = WarmUpProcessorsOperator(
        task_id="warm_up_processors",
        application_file=str(write_pipeline(tmp_path)),
        application_id="words",
        kafka_conn_id="kafka_x",
        conn_id="spark_x",
    )
    assert warming.execute(CONTEXT) == {}
    request = WarmUpRequest.model_validate_json(warming._arguments(CONTEXT)[-1])
    assert request.pipeline == "tests.support.words_pipeline:words"


@pytest.mark.parametrize(("given", "asked"), [(4, [4]), ("4", [4]), (None, []), ("", [])])
def test_processors_are_asked_for_before_tasks_are_assigned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: object, asked: list[int]
) -> None:
    calls: list[Any] = []
    done = SimpleNamespace(processing=SimpleNamespace(running=("words-StreamThread-1",)))
    monkeypatch.setattr(AssignOperator, "connection", lambda *_: None)
    monkeypatch.setattr(processors, "expand_processors", lambda _, __, count: calls.append(count))
    monkeypatch.setattr(processing, "prepare", lambda *_: calls.append("prepare") or done)
    assign = AssignOperator(
        task_id="assign", application_file=str(write_pipeline(tmp_path)), expand_processors=given
    )
    assert assign.execute(CONTEXT) == ["words-StreamThread-1"]
    assert calls == [*asked, "prepare"]


def test_no_driver_is_started_where_there_is_nothing_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook

    monkeypatch.setattr(KafkaRescaleHook, "connection", lambda self: None)
    monkeypatch.setattr(processing, "is_idle", lambda *_: True)
    assert operator(tmp_path).execute(CONTEXT) == {}
