"""The snapshot DAG: one day per data interval, backfills for missed days, and no lease."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from kafka_rescale.airflow.operators.snapshot import SnapshotOperator
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.snapshots.request import SnapshotRequest

from tests.support.application_files import write_application

if TYPE_CHECKING:
    from airflow.sdk import DAG

DAY = datetime(2026, 1, 3, tzinfo=UTC)
ROOT = Path(__file__).resolve().parents[3]
CONTEXT: Any = {
    "dag_run": SimpleNamespace(dag_id="snapshot_orders-app", run_id="backfill__1"),
    "ti": SimpleNamespace(try_number=2),
}


def parsed(
    directory: Path, monkeypatch: pytest.MonkeyPatch, kind: str = "snapshot", **snapshots: Any
) -> DAG | None:
    from airflow.dag_processing.dagbag import DagBag

    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(directory))
    section = {"snapshots": {"location": str(directory), **snapshots}} if snapshots else {}
    write_application(directory, **section)
    bag = DagBag(ROOT / "dags")
    assert bag.import_errors == {}
    return bag.dags.get(f"{kind}_orders-app")


def operator(directory: Path, **arguments: Any) -> SnapshotOperator:
    file = write_application(directory, snapshots={"location": str(directory)})
    interval = {"start": "2026-01-05T00:00:00+00:00", "end": "2026-01-06T00:00:00+00:00"}
    return SnapshotOperator(
        task_id="snapshot",
        application_file=str(file),
        application_id="orders-app",
        kafka_conn_id="kafka_x",
        conn_id="spark_x",
        **{**interval, **arguments},
    )


def test_only_an_application_that_asks_for_snapshots_has_the_dag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert parsed(tmp_path, monkeypatch) is None
    assert parsed(tmp_path, monkeypatch, keep_days=3) is not None


def test_its_data_interval_is_the_last_whole_day_also_for_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.serialization.encoders import coerce_to_core_timetable
    from airflow.timetables.trigger import CronTriggerTimetable

    dag = parsed(tmp_path, monkeypatch, keep_days=3)
    assert dag is not None
    now = datetime(2026, 1, 6, 3, tzinfo=UTC)
    timetable = coerce_to_core_timetable(dag.timetable)
    interval = timetable.infer_manual_data_interval(run_after=now)
    assert [t.isoformat()[:10] for t in interval] == ["2026-01-05", "2026-01-06"]
    assert timetable.periodic, "a backfill needs it"
    moment = CronTriggerTimetable("@daily", timezone="UTC").infer_manual_data_interval(run_after=now)
    assert moment.start == moment.end, "what Airflow makes of @daily"


@pytest.mark.parametrize(
    ("snapshots", "catchup", "start"),
    [
        ({"keep_days": 3}, False, "2025-01-01"),
        ({"catchup": True, "start_date": "2026-01-05"}, True, "2026-01-05"),
    ],
)
def test_whether_days_are_made_up_for_is_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshots: dict[str, Any], catchup: bool, start: str
) -> None:
    dag = parsed(tmp_path, monkeypatch, **snapshots)
    assert dag is not None
    assert (dag.catchup, dag.start_date.isoformat()[:10], dag.max_active_runs) == (catchup, start, 1)
    assert dag.allowed_run_types is None, "backfills among them"
    assert dag.params.validate() == {"from_scratch": False}
    assert [(t.task_id, t.owner) for t in dag.tasks] == [("snapshot", "kafka-rescale")]


def test_the_job_is_asked_for_the_day_and_reads_the_file_when_it_runs(tmp_path: Path) -> None:
    arguments = operator(tmp_path, from_scratch="True")._arguments(CONTEXT)
    assert arguments[:6] == [
        *("--application", "orders-app"),
        *("--run", "snapshot_orders-app/backfill__1"),
        *("--attempt", "2"),
    ]
    request = SnapshotRequest.model_validate(json.loads(arguments[arguments.index("--request") + 1]))
    assert (request.date, request.location, request.from_scratch) == ("2026-01-05", str(tmp_path), True)


def test_days_of_a_backfill_leave_results_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator

    monkeypatch.setattr(RescaleSparkSubmitOperator, "execute", lambda task, _: {"key": task.result_key})
    assert operator(tmp_path).execute(CONTEXT) == {"key": "snapshot/2026-01-05"}


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ({}, "2026-01-05"),
        ({"data_interval_start": None, "data_interval_end": None}, "2026-01-05"),
        ({"data_interval_start": DAY, "data_interval_end": DAY + timedelta(days=1)}, "2026-01-03"),
    ],
    ids=["undefined", "none", "a day"],
)
def test_a_run_without_a_logical_date_takes_the_last_day_before_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interval: dict[str, Any], expected: str
) -> None:
    """Templates are rendered as Airflow does: an undefined value is an error."""
    dag = parsed(tmp_path, monkeypatch, keep_days=3)
    assert dag is not None
    task = dag.get_task("snapshot")
    # In UTC it is still the 6th, but in the run's time zone it is already the 7th.
    due = datetime(2026, 1, 7, 1, tzinfo=timezone(timedelta(hours=2)))
    run = SimpleNamespace(dag_id="snapshot_orders-app", run_id="manual__1", run_after=due)
    context: Any = {**CONTEXT, "dag_run": run, "params": {"from_scratch": False}, **interval}
    task.render_template_fields(context)
    arguments = task._arguments(context)
    request = SnapshotRequest.model_validate(json.loads(arguments[arguments.index("--request") + 1]))
    assert request.date == expected


def test_an_interval_that_is_no_day_is_refused_before_a_driver_is_started(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="a whole day"):
        operator(tmp_path, end="2026-01-05T00:00:00+00:00").execute(CONTEXT)


@pytest.mark.parametrize("snapshots", [{}, {"keep_days": 3}], ids=["without", "with"])
def test_a_restore_is_told_where_snapshots_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshots: dict[str, Any]
) -> None:
    dag = parsed(tmp_path, monkeypatch, "expand", **snapshots)
    assert dag is not None
    restores = [t for t in dag.tasks if t.task_id.endswith(".restore")]
    expected = ["--snapshots", str(tmp_path)] if snapshots else []
    assert len(restores) == 3
    for task in restores:
        assert task._arguments(CONTEXT)[8:] == expected


def test_what_decides_the_day_is_filled_in_by_airflow() -> None:
    assert {"start", "end", "from_scratch", "application_file"} <= set(SnapshotOperator.template_fields)
    assert "env_vars" not in SnapshotOperator.template_fields
