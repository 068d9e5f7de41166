"""``process_<application>``: a `spark-submit` per thread and level.

``keep_warm_<application>``: one per client.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from kafka_rescale.airflow.markdown import assignment_markdown
from kafka_rescale.airflow.operators.keep_warm import KeepWarmOperator, ProbeOperator
from kafka_rescale.airflow.operators.process import AssignOperator, ProcessOperator, alive
from kafka_rescale.airflow.operators.processors import WarmUpProcessorsOperator
from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.stream_threads import Decision
from kafka_rescale.core.assignment.tasks import TaskId, Tasks
from kafka_rescale.core.control.autoscaling import Autoscaling, Parallelism
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.control.processors import PipelineProcessors, ProcessorCounts
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, UnsafeState
from kafka_rescale.core.processing.adjustments import Adjustments
from kafka_rescale.core.processing.autoscaling import NOT_LOOKED
from kafka_rescale.core.processing.dead_threads import thread_died
from kafka_rescale.core.processing.rebalance import Member, Rebalance
from kafka_rescale.core.processing.request import KeepWarmRequest, ProcessRequest, WarmUpRequest
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.application.load import load_pipeline_application
from kafka_rescale.operations.processing import dead_threads, keep_warm
from kafka_rescale.operations.processing import prepare as processing
from kafka_rescale.operations.processing.processors import is_split

from tests.support.words_pipeline import write_pipeline

ROOT = Path(__file__).resolve().parents[3]
CONTEXT: Any = {
    "dag_run": SimpleNamespace(dag_id="process_words", run_id="scheduled__1", run_type="scheduled"),
    "ti": SimpleNamespace(try_number=2, max_tries=2),
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


def test_the_callback_has_a_task_that_nobody_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dag = parsed(tmp_path, monkeypatch, on_partition_expansion="my_module:note")["process_words"]
    assert dag.get_task("callback").upstream_task_ids == {"assign"}
    assert dag.get_task("callback").downstream_task_ids == set()


@pytest.mark.parametrize("enabled", [True, False])
def test_a_run_reports_the_metrics_of_the_kip(monkeypatch: pytest.MonkeyPatch, enabled: bool) -> None:
    from kafka_rescale.airflow import metrics

    sent: dict[str, tuple[Any, ...]] = {}
    monkeypatch.setattr(metrics.stats, "gauge", lambda name, value, tags: sent.update({name: (value, tags)}))
    application: Any = SimpleNamespace(application_id="words", autoscaling_enabled=enabled)
    metrics.report(application, [Parallelism(0, 2, 4)], Autoscaling(failures=3))
    tags = {"application-id": "words", "subtopology-id": "0"}
    group = "stream-subtopology-metrics.words.0"
    expected: dict[str, tuple[Any, ...]] = {f"{group}.current-subtopology-parallelism": (2, tags)}
    if enabled:
        expected[f"{group}.expected-subtopology-parallelism"] = (4, tags)
        failures = "stream-client-metrics.words.num-autoscaling-failures"
        expected[failures] = (3, {"client-id": "words"})
    assert sent == expected


def test_new_processors_warm_up_beside_the_run_which_does_not_wait_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dag = parsed(tmp_path, monkeypatch)["process_words"]
    assert dag.get_task("warm_up_processors").downstream_task_ids == set()
    assert dag.get_task("warm_up_processors").expand_input.value == {"client": ["words"]}
    assert dag.params["expand_processors"] is None


def test_it_can_run_continuously(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dag = parsed(tmp_path, monkeypatch, schedule="@continuous")["process_words"]
    assert type(dag.timetable).__name__ == "ContinuousTimetable"


def test_a_pipeline_that_can_not_be_imported_has_a_dag_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dags = parsed(tmp_path, monkeypatch, pipeline="no_such_module:pipeline")
    assert dags["invalid_process_words"].task_ids == ["invalid"]
    assert "No module named" in (dags["invalid_process_words"].doc_md or "")


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


def test_standbys_that_are_missing_are_a_warning_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every, configs = Tasks({TaskId(0, 1): 0}), AssignmentConfigs(num_standby_replicas=1)
    alone = Rebalance("run", 0, every, [Member("words", 1)], configs).of(None)
    done = SimpleNamespace(processing=alone, scaled=NOT_LOOKED)
    monkeypatch.setattr(AssignOperator, "connection", lambda *_: KafkaConnection({"bootstrap.servers": "h:9"}))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setattr(processing, "prepare", lambda *_: done)
    file = write_pipeline(tmp_path, **{"num.standby.replicas": 1})
    assign = AssignOperator(task_id="assign", application_file=str(file))
    warnings: list[str] = []
    monkeypatch.setattr(assign.log, "warning", lambda text, *args: warnings.append(text % args))
    assign.execute({**CONTEXT, "params": {}})
    (warning,) = (text for text in warnings if "standbys" in text)
    assert warning.startswith("1 of 1 standbys of 0_1 has no client: ")
    assert "| 0_1 | 1 |" in assignment_markdown(alone)


def test_no_driver_is_started_where_no_processor_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook

    monkeypatch.setattr(KafkaRescaleHook, "connection", lambda self: None)
    monkeypatch.setattr(ControlTopic, "__init__", lambda *_: None)
    monkeypatch.setattr(ControlTopic, "read", lambda _: ControlState())
    warming = WarmUpProcessorsOperator(
        task_id="warm_up_processors",
        client="words",
        application_file=str(write_pipeline(tmp_path)),
        application_id="words",
        kafka_conn_id="kafka_x",
        conn_id="spark_x",
    )
    assert warming.execute(CONTEXT) == {}
    request = WarmUpRequest.model_validate_json(warming._arguments(CONTEXT)[-1])
    assert (request.pipeline, request.client_id) == ("tests.support.words_pipeline:words", "words")
    assert request.key == "warm_up_processors/words"


def test_new_processors_warm_up_where_those_are_that_they_are_split_from(monkeypatch: pytest.MonkeyPatch) -> None:
    every = Tasks(dict.fromkeys([TaskId(0, 0), TaskId(0, 1)], 0))
    assigned = Rebalance("run", 0, every, [Member("a", 1), Member("b", 1)]).of(None)
    owners = {str(task): client.client_id for client in assigned.clients for task in client.active}
    assert len(set(owners.values())) == 2
    counts = ProcessorCounts(initial=2, count=2, expanding_to=3)
    expanding = PipelineProcessors(sub_topologies={0: counts})
    connection: Any = None
    monkeypatch.setattr(ControlTopic, "__init__", lambda *_: None)
    monkeypatch.setattr(ControlTopic, "read", lambda _: ControlState(processing=assigned, processors=expanding))
    assert {c: is_split("words", connection, c) for c in ("a", "b", "gone")} == {
        owners["0_0"]: True,
        owners["0_1"]: False,
        "gone": False,
    }


def test_what_the_form_asks_for_is_done_with_the_rebalance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    done = SimpleNamespace(processing=started("words-StreamThread-1"), scaled=NOT_LOOKED)
    monkeypatch.setattr(AssignOperator, "connection", lambda *_: KafkaConnection({"bootstrap.servers": "h:9"}))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setattr(processing, "prepare", lambda *given: calls.append(given[2:]) or done)
    assign = AssignOperator(task_id="assign", application_file=str(write_pipeline(tmp_path)))
    params = {"add_stream_thread": "words", "expand_processors": 4}
    assert assign.execute({**CONTEXT, "params": params}) == ["words-StreamThread-1"]
    assert calls == [("process_words/scheduled__1", Adjustments(add_to="words", processors=4), None)]


def test_no_driver_is_started_where_there_is_nothing_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook

    monkeypatch.setattr(KafkaRescaleHook, "connection", lambda self: None)
    monkeypatch.setattr(dead_threads, "take_over", lambda *_: None)
    monkeypatch.setattr(processing, "is_idle", lambda *_: True)
    assert operator(tmp_path).execute(CONTEXT) == {}


CLIENTS = [
    {"client.id": "a", "state.dir": "/a"},
    {"client.id": "b", "state.dir": "/b", "spark_conn_id": "spark_b", "spark_conf": {"spark.executor.cores": "2"}},
]
SEVERAL: dict[str, Any] = {"clients": CLIENTS, "state.dir": None}


def test_several_clients_have_a_dag_that_keeps_their_standbys_warm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dags = parsed(tmp_path, monkeypatch, **SEVERAL, keep_warm_schedule="*/7 * * * *")
    assert set(dags) == {"process_words", "keep_warm_words"}
    dag = dags["keep_warm_words"]
    assert (dag.schedule, dag.catchup) == ("*/7 * * * *", False)
    assert dag.max_active_runs == len(CLIENTS) + 1, "a run in which every client restores holds up no probe"
    assert dag.get_task("standbys").downstream_task_ids == {"keep_warm"}
    assert dag.get_task("keep_warm").is_mapped
    assert dag.get_task("probe").downstream_task_ids == {"rebalance"}
    assert dag.get_task("rebalance").trigger_dag_id == "process_words"
    assert set(dags["process_words"].params) == {
        "add_stream_thread",
        "remove_stream_thread",
        "remove_stream_thread_timeout_seconds",
        "remove_client",
        "start_client",
        "expand_processors",
        "interval_start",
        "interval_end",
    }
    assert dags["process_words"].get_task("warm_up_processors").expand_input.value == {"client": ["a", "b"]}
    assert dags["process_words"].params.get_param("remove_client").schema["enum"] == [None, "a", "b"]


@pytest.mark.parametrize(
    ("due", "before", "queued", "triggered"),
    [
        ("probing__9", ["probing__1"], 0, True),
        ("probing__9", ["probing__1"], 1, False),
        ("probing__9", ["probing__2", "probing__3", "probing__1"], 1, False),
        ("probing__9", [], 1, True),
        ("", ["probing__1"], 0, False),
    ],
)
def test_a_probing_run_is_triggered_unless_the_last_one_is_queued_still(
    due: str, before: list[str], queued: int, triggered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a run of hours, or of a DAG that is paused, each interval would add one.

    A backfill that was queued for weeks is no such run: it assigns nothing of the generation at work.
    """
    asked: list[Any] = []

    def count(dag_id: str, run_ids: list[str], states: list[str]) -> int:
        asked.append((dag_id, run_ids, states))
        return queued

    monkeypatch.setattr(RuntimeTaskInstance, "get_dr_count", staticmethod(count))
    monkeypatch.setattr(keep_warm, "probe", lambda *_: keep_warm.Probe(due, "2 tasks warm up"))
    monkeypatch.setattr(ProbeOperator, "connection", lambda *_: None)
    skipped: list[str] = []
    monkeypatch.setattr(ProbeOperator, "skip", lambda *_, tasks, **__: skipped.extend(tasks))
    made = ProbeOperator(task_id="probe", application_file=str(write_pipeline(tmp_path, **SEVERAL)))
    behind: Any = SimpleNamespace(get_flat_relatives=lambda *, upstream: ["rebalance"])
    # Airflow returns a list only if several runs before have returned something.
    pulled: Any = before if len(before) > 1 else next(iter(before), None)
    ti = SimpleNamespace(xcom_pull=lambda task_ids, key, include_prior_dates: pulled)
    behind.task_id = "probe"
    assert made.execute({"ti": ti, "task": behind}) == (due if triggered else "")
    assert skipped == ([] if triggered else ["rebalance"])
    assert asked == ([("process_words", [max(before)], ["queued"])] if due and before else [])


def test_a_clients_job_has_its_state_dir_its_spark_and_its_configuration(tmp_path: Path) -> None:
    file = str(write_pipeline(tmp_path, **SEVERAL))
    known: dict[str, Any] = {"application_file": file, "application_id": "words", "kafka_conn_id": "kafka_x"}
    application = load_pipeline_application(file)
    process = ProcessOperator(
        task_id="process_1", level=1, thread="b-StreamThread-1", conn_id="spark_x", conf={"x": "1"}, **known
    )
    process._runs_on(application.member("b"))
    assert (process._conn_id, process.conf) == ("spark_b", {"x": "1", "spark.executor.cores": "2"})
    assert process._request(CONTEXT).state_dir == "/b"
    new = WarmUpProcessorsOperator(task_id="warm_up_processors", client="b", conn_id="spark_x", **known)
    asked = WarmUpRequest.model_validate_json(new._arguments(CONTEXT)[-1])
    assert (asked.client_id, asked.state_dir, asked.key) == ("b", "/b", "warm_up_processors/b")
    warm = KeepWarmOperator(task_id="keep_warm", client="a", conn_id="spark_x", **known)
    warm._runs_on(application.member("a"))
    assert warm._conn_id == "spark_x"
    request = KeepWarmRequest.model_validate_json(warm._arguments(CONTEXT)[-1])
    assert (request.client_id, request.state_dir, request.key) == ("a", "/a", "keep_warm/a")


def started(*threads: str) -> Processing:
    every = Tasks({TaskId(0, 0): 0})
    return Rebalance("run", 0, every, [Member("words", len(threads) or 1)]).of(None)


def test_the_work_of_a_dead_thread_is_done_by_the_one_that_replaces_it(tmp_path: Path) -> None:
    dead = "words-StreamThread-1"
    replaced = thread_died(started(dead), dead, Decision.REPLACE_THREAD)
    made = operator(tmp_path)
    made._stands_for = alive(replaced, dead)
    request = made._request(CONTEXT)
    assert (request.thread, request.key) == ("words-StreamThread-2", f"process/2/{dead}")


def failing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, decision: Decision
) -> tuple[list[int], ProcessOperator]:
    """An operator whose `spark-submit` fails, and the list of failed threads that are reported."""
    from kafka_rescale.airflow.operators import process
    from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator

    def submit(*_: Any) -> None:
        raise error

    monkeypatch.setattr(ControlTopic, "__init__", lambda *_: None)
    reported: list[int] = []
    after = thread_died(started(), "words-StreamThread-1", decision)
    monkeypatch.setattr(RescaleSparkSubmitOperator, "_submit", submit)
    monkeypatch.setattr(dead_threads, "handle_failure", lambda *_: after)
    monkeypatch.setattr(
        process, "report_failed_threads", lambda p: reported.append(p.clients[0].failed_stream_threads)
    )
    return reported, operator(tmp_path)


def test_a_killed_spark_submit_is_retried_by_the_thread_that_replaces_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection: Any = None
    reported, made = failing(tmp_path, monkeypatch, AirflowException("killed"), Decision.REPLACE_THREAD)
    with pytest.raises(AirflowException, match="killed"):
        made._submit(connection, CONTEXT)
    assert reported == [1]


def test_nobody_retries_what_a_client_had_that_is_shut_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection: Any = None
    _, made = failing(tmp_path, monkeypatch, AirflowException("killed"), Decision.SHUTDOWN_CLIENT)
    with pytest.raises(UnsafeState, match="start-client FILE --client words"):
        made._submit(connection, CONTEXT)


def test_an_attempt_that_was_superseded_is_no_dead_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection: Any = None
    fenced = Fenced("job", found="a newer attempt", expected="none", remedy="Nothing.")
    reported, made = failing(tmp_path, monkeypatch, fenced, Decision.REPLACE_THREAD)
    with pytest.raises(Fenced):
        made._submit(connection, CONTEXT)
    assert reported == []


def test_failed_threads_go_to_airflows_stats(monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_rescale.airflow import metrics

    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(metrics.stats, "gauge", lambda *a, **k: sent.append((*a, k["tags"])))
    metrics.report_failed_threads(thread_died(started(), "words-StreamThread-1", Decision.REPLACE_THREAD))
    assert sent == [("stream-metrics.words.failed-stream-threads", 1, {"client-id": "words"})]


def test_the_log_shows_who_has_what_and_what_is_still_to_come() -> None:
    text = assignment_markdown(started())
    assert "| words | RUNNING | 0_0 | - |" in text
    assert "waits for" not in text
