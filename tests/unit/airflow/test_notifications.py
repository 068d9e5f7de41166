"""Notifications: the callbacks of the DAGs, and what arrives at a notifier, part by part."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.serialization.serialized_objects import DagSerialization
from kafka_rescale.airflow.dags.expansion import expansion_dag
from kafka_rescale.airflow.dags.factory import build_dags
from kafka_rescale.airflow.dags.watch import watch_dag
from kafka_rescale.core.errors import Finding, Outage, PreflightRefused

from tests.support.airflow.recorded_notices import declared, told
from tests.support.application_files import write_application

if TYPE_CHECKING:
    from airflow.sdk import DAG

APPLICATION = "orders-app"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file to which the notifier writes."""
    return tmp_path / "told.jsonl"


@pytest.fixture
def applications(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "applications"
    directory.mkdir()
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(directory))
    return directory


@pytest.fixture
def expand(applications: Path, file: Path) -> DAG:
    write_application(applications, notifications=[declared(file)], pause_alert_seconds=60)
    return build_dags(expansion_dag, "expand")[f"expand_{APPLICATION}"]


@pytest.fixture
def watch(applications: Path, file: Path) -> DAG:
    write_application(applications, notifications=[declared(file)])
    return build_dags(watch_dag, "watch")[f"watch_{APPLICATION}"]


def context_of(dag: DAG, task_id: str, returned: Any = None, **more: Any) -> Any:
    """The parts of an ended task's context that callbacks look at."""
    ti = SimpleNamespace(xcom_pull=lambda task_ids: returned if task_ids == task_id else None)
    run = SimpleNamespace(dag_id=dag.dag_id, run_id="manual__1")
    return {"dag": dag, "task": dag.get_task(task_id), "ti": ti, "dag_run": run, **more}


def succeed(dag: DAG, task_id: str, returned: Any) -> None:
    """Call the callbacks of a task that has succeeded."""
    for callback in dag.get_task(task_id).on_success_callback:
        callback(context_of(dag, task_id, returned))


def fail(dag: DAG, task_id: str, **more: Any) -> None:
    """Call the callbacks of a task that has failed."""
    for callback in dag.get_task(task_id).on_failure_callback:
        callback(context_of(dag, task_id, **more))


def test_without_notifications_the_dags_are_as_ever(applications: Path) -> None:
    write_application(applications)
    dag = build_dags(expansion_dag, "expand")[f"expand_{APPLICATION}"]
    assert "pause_alert" not in dag.task_ids
    assert not any(task.on_failure_callback or task.on_success_callback for task in dag.tasks)


def test_a_dag_with_notifiers_is_serialized_alike_each_time(expand: DAG, applications: Path) -> None:
    """The stored DAG must not differ from parse to parse, because each difference makes a new version."""
    again = build_dags(expansion_dag, "expand")[f"expand_{APPLICATION}"]
    assert DagSerialization.to_dict(expand) == DagSerialization.to_dict(again)


def test_a_complete_expansion_is_told_with_its_downtime_by_part(expand: DAG, file: Path) -> None:
    timings = {"drain": 1.2, "delta": 0.4, "start": 2.0, "total": 3.6}
    succeed(expand, "callback", {"green": "orders-app-g2", "timings": timings, "report": {}})
    (notice,) = told(file)
    assert notice["event"] == "complete"
    assert notice["subject"] == "Expansion of orders-app is complete"
    assert "orders-app-g2 runs, and its whole state was verified." in notice["text"]
    assert "Downtime: 3.6 s\n  producers held, inputs drained: 1.2 s\n  last delta copied: 0.4 s" in notice["text"]
    assert notice["run"] == "expand_orders-app/manual__1"


def test_a_complete_expansion_tells_what_was_not_copied_and_what_was_accepted(expand: DAG, file: Path) -> None:
    result = {"green": "orders-app-g2", "timings": {}, "not_copied": ["recent"], "accepted": 2}
    succeed(expand, "callback", result)
    (notice,) = told(file)
    assert "whole state" not in notice["text"]
    assert "all that was copied was verified. Store recent is not copied" in notice["text"]
    assert "A person had accepted 2 findings" in notice["text"]


def test_a_failure_is_told_with_its_cause_and_the_next_step(expand: DAG, file: Path) -> None:
    error = Outage("pause of orders-app", found="more than 300 s", expected="300", remedy="Trigger again.")
    fail(expand, "cutover", exception=error)
    (notice,) = told(file)
    assert notice["subject"] == "orders-app: task cutover has failed"
    assert "pause of orders-app: found more than 300 s; expected 300" in notice["text"]
    assert "Next: Trigger again." in notice["text"]


def test_every_finding_of_a_preflight_is_told(expand: DAG, file: Path) -> None:
    findings = [Finding(f"topic {n}", "a", "b", f"Mend {n}.") for n in "xyz"]
    fail(expand, "preflight", exception=PreflightRefused(findings))
    (notice,) = told(file)
    assert all(str(finding) in notice["text"] for finding in findings)


def test_a_worker_that_was_killed_is_told_without_an_exception(expand: DAG, file: Path) -> None:
    """Airflow then runs the callback in the DAG processor, which has no exception."""
    fail(expand, "cutover")
    (notice,) = told(file)
    assert "it was killed, or its machine is gone" in notice["text"]
    assert "python -m kafka_rescale status FILE" in notice["text"]


def test_a_rollback_is_told_if_there_was_one(expand: DAG, file: Path) -> None:
    def ends(*, is_done: bool, said: str) -> None:
        succeed(expand, "roll_back", {"is_done": is_done, "told": said})

    ends(is_done=False, said="nothing to roll back: no expansion is in progress")
    ends(is_done=False, said="not rolled back: orders-app-g2 owns the inputs since its promotion; only forward")
    assert told(file) == []
    ends(is_done=True, said="rolled back; orders-app was started again")
    ends(is_done=True, said="rolled back before, by the task that failed; orders-app was started again")
    assert [notice["event"] for notice in told(file)] == ["rolled_back", "rolled_back"]
    for notice in told(file):
        assert "orders-app was started again" in notice["text"]
        assert "trigger expand_orders-app again" in notice["text"]


def test_who_is_asked_for_an_approval_is_told_with_the_evidence(expand: DAG, file: Path) -> None:
    task: Any = expand.get_task("approve_cutover")
    task.body = "| topic | lag |"
    for notifier in task.notifiers:
        notifier(context_of(expand, "approve_cutover"))
    (notice,) = told(file)
    assert notice["subject"] == "Approval wanted: Cut orders-app over now?"
    assert "| topic | lag |" in notice["text"]


def test_the_pause_is_watched_beside_the_cutover(expand: DAG, file: Path) -> None:
    alert = expand.get_task("pause_alert")
    assert alert.upstream_task_ids == expand.get_task("cutover").upstream_task_ids
    assert alert.downstream_task_ids == set()
    succeed(expand, "pause_alert", {"late": False, "seconds": 0.0, "phase": "started"})
    assert told(file) == []
    succeed(expand, "pause_alert", {"late": True, "seconds": 75.0, "phase": "quiescing"})
    (notice,) = told(file)
    assert notice["event"] == "long_pause"
    assert notice["subject"] == "The pause of orders-app has lasted 75 s, longer than 60 s"
    assert "trigger rollback_orders-app" in notice["text"]


@pytest.mark.parametrize(
    ("phase", "way"), [("promoted", "Only forward"), ("caught_up", "rollback_"), ("rolling_back", "being started")]
)
def test_a_long_pause_is_told_with_the_way_that_its_phase_leaves(
    expand: DAG, file: Path, phase: str, way: str
) -> None:
    succeed(expand, "pause_alert", {"late": True, "seconds": 75.0, "phase": phase})
    assert way in told(file)[0]["text"]


def test_in_place_the_pause_is_watched_beside_the_cutover(applications: Path, file: Path) -> None:
    write_application(applications, mode="in_place", notifications=[declared(file)], pause_alert_seconds=60)
    dag = build_dags(expansion_dag, "expand")[f"expand_{APPLICATION}"]
    assert dag.get_task("pause_alert").upstream_task_ids == dag.get_task("cutover").upstream_task_ids


def test_an_error_of_the_watch_is_one_of_autoscaling(watch: DAG, file: Path) -> None:
    fail(watch, "watch", exception=Outage("brokers", found="none", expected="some", remedy="Wait."))
    (notice,) = told(file)
    assert notice["event"] == "autoscaling"


def test_that_the_watch_has_given_up_is_told_once(watch: DAG, file: Path) -> None:
    found = {"outcome": "gave_up", "reason": "gave up expanding orders-app to 8 partitions"}
    succeed(watch, "watch", {**found, "just_gave_up": True})
    succeed(watch, "watch", found)
    succeed(watch, "watch", {"outcome": "in_line", "reason": "every count follows from the inputs"})
    (notice,) = told(file)
    assert "gave up expanding orders-app to 8 partitions" in notice["text"]


def test_a_late_run_of_the_schedule_is_told_with_its_reason_and_what_to_do(expand: DAG, file: Path) -> None:
    found = {"plan": None, "noop": True, "messages": ["This run is skipped: 4.0 h ago."], "predicted": None}
    succeed(expand, "preflight", {**found, "is_told": True})
    succeed(expand, "preflight", {**found, "is_told": False})
    succeed(expand, "preflight", found)
    (notice,) = told(file)
    assert (notice["event"], notice["subject"]) == ("skipped", "Scheduled expansion of orders-app did not happen")
    assert "This run is skipped: 4.0 h ago." in notice["text"]
    assert "trigger expand_orders-app" in notice["text"]


def test_a_notifier_is_told_of_its_events_only(applications: Path, file: Path) -> None:
    write_application(applications, notifications=[declared(file, "complete")])
    dag = build_dags(expansion_dag, "expand")[f"expand_{APPLICATION}"]
    fail(dag, "cutover")
    assert told(file) == []


def test_a_notifier_that_fails_harms_nobody(
    applications: Path, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = {"notifier": "tests.support.airflow.recorded_notices:BrokenNotifier"}
    write_application(applications, notifications=[broken, declared(file)])
    dag = build_dags(expansion_dag, "expand")[f"expand_{APPLICATION}"]
    with caplog.at_level(logging.INFO):
        fail(dag, "cutover")
    assert len(told(file)) == 1
    assert "BrokenNotifier failed for event failed" in caplog.text


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"notifier": "nowhere:Notifier"}, "No module named 'nowhere'"),
        ({"notifier": "pathlib:Path"}, "not a BaseNotifier"),
        ({"arguments": {"fiel": "x"}}, "unexpected keyword argument 'fiel'"),
    ],
)
def test_a_notifier_that_can_not_be_used_is_seen_before_it_is_needed(
    applications: Path, file: Path, changes: dict[str, Any], found: str
) -> None:
    write_application(applications, notifications=[{**declared(file), **changes}])
    dag = build_dags(expansion_dag, "expand")[f"invalid_expand_{APPLICATION}"]
    assert "invalid" in dag.tags
    assert found in (dag.doc_md or "")


def test_a_notifier_of_a_provider_takes_the_templates(applications: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The e-mail of Airflow's SMTP provider, up to where it would be sent."""
    sent: list[dict[str, Any]] = []
    hook = "airflow.providers.smtp.notifications.smtp.SmtpHook"
    monkeypatch.setattr(f"{hook}.__enter__", lambda self: self)
    monkeypatch.setattr(f"{hook}.__exit__", lambda *_: None)
    monkeypatch.setattr(f"{hook}.send_email_smtp", lambda _, **message: sent.append(message))
    arguments = {
        "to": "streams@example.com",
        "from_email": "airflow@example.com",
        "subject": "{{ rescale.subject }}",
        "html_content": "<pre>{{ rescale.text | e }}</pre>",
        "smtp_conn_id": "mail",
    }
    smtp = {"notifier": "airflow.providers.smtp.notifications.smtp:SmtpNotifier", "arguments": arguments}
    write_application(applications, notifications=[smtp])
    dag = build_dags(expansion_dag, "expand")[f"expand_{APPLICATION}"]
    fail(dag, "cutover")
    fail(dag, "verify")
    assert [message["subject"] for message in sent] == [
        "orders-app: task cutover has failed",
        "orders-app: task verify has failed",
    ]
    assert "Next: " in sent[0]["html_content"]
