"""A run that the schedule begins long after its time expands nothing; what a person asks for does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import DownstreamTasksSkipped
from kafka_rescale.airflow.operators import admin
from kafka_rescale.airflow.runs import LATE_TOLD_KEY

from tests.support.application_files import write_application

FOUR_DAYS, AN_HOUR = timedelta(days=4, hours=8), timedelta(hours=1)


class HasBegun(Exception):
    """Preflight looks at the application."""


class Pushed:
    """The task instance of an attempt."""

    def __init__(self, try_number: int) -> None:
        self.try_number, self.map_index = try_number, -1
        self.values: dict[str, Any] = {}
        self.before: Any = []

    def xcom_push(self, key: str, value: Any) -> None:
        self.values[key] = value

    def xcom_pull(self, *, task_ids: str, key: str, include_prior_dates: bool) -> Any:
        """Answer as Airflow does for all runs before: nothing, one value, or a list of them."""
        assert (task_ids, key, include_prior_dates) == ("preflight", LATE_TOLD_KEY, True)
        if isinstance(self.before, Exception):
            raise self.before
        return self.before if len(self.before) > 1 else next(iter(self.before), None)


@pytest.fixture(autouse=True)
def _begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def begun(*_: Any, **__: Any) -> Any:
        raise HasBegun

    monkeypatch.setattr(admin.PreflightOperator, "connection", begun)


def execute(
    directory: Path, late: timedelta, *, schedule: str = "0 2 * * wed", ti: Any = None, **run: Any
) -> tuple[str, ...]:
    """Execute the first task of a run. Return the tasks that it skips."""
    file = str(write_application(directory, schedule=schedule))
    with DAG("expand_orders-app", schedule=None):
        task = admin.PreflightOperator(task_id="preflight", application_file=file)
        task >> EmptyOperator(task_id="plan") >> EmptyOperator(task_id="ensure_running").as_teardown()
    of_schedule = {"run_type": "scheduled", "clear_number": 0, "run_after": datetime.now(UTC) - late}
    context: Any = {"task": task, "ti": ti or Pushed(1), "dag_run": SimpleNamespace(**{**of_schedule, **run})}
    with pytest.raises(DownstreamTasksSkipped) as skipped:
        task.execute(context)
    return tuple(sorted(str(each) for each in skipped.value.tasks))


@pytest.mark.parametrize("late", [FOUR_DAYS, AN_HOUR + timedelta(minutes=1)])
@pytest.mark.parametrize("try_number", [1, 2], ids=["", "tried again by Airflow"])
def test_it_ends_before_anything_is_looked_at_and_says_why(
    tmp_path: Path, late: timedelta, try_number: int
) -> None:
    ti = Pushed(try_number)
    assert execute(tmp_path, late, ti=ti) == ("ensure_running", "plan")
    (told,) = ti.values["return_value"]["messages"]
    assert f"{late / AN_HOUR:.1f} h ago" in told
    assert "trigger the DAG" in told


@pytest.mark.parametrize(
    ("hours_before", "is_told"),
    [([], True), ([1], False), ([23], False), ([25], True), ([23, 50, 80], False), ([80, 25, 50], True)],
    ids=str,
)
def test_one_cause_is_told_once_a_day(tmp_path: Path, hours_before: list[int], is_told: bool) -> None:
    """If each run of an hourly schedule begins late, a person on call is not paged each hour."""
    ti = Pushed(1)
    ti.before = [(datetime.now(UTC) - hours * AN_HOUR).isoformat() for hours in hours_before]
    execute(tmp_path, FOUR_DAYS, ti=ti)
    assert ti.values["return_value"]["is_told"] is is_told
    assert (LATE_TOLD_KEY in ti.values) is is_told


def test_it_is_told_if_it_is_not_known_what_was_told(tmp_path: Path) -> None:
    ti = Pushed(1)
    ti.before = RuntimeError("no API server")
    assert execute(tmp_path, FOUR_DAYS, ti=ti) == ("ensure_running", "plan")
    assert ti.values["return_value"]["is_told"] is True


@pytest.mark.parametrize(
    "of_run",
    [
        {"late": AN_HOUR - timedelta(minutes=1)},
        {"late": FOUR_DAYS, "run_type": "manual"},
        {"late": FOUR_DAYS, "run_type": "operator_triggered"},
        {"late": FOUR_DAYS, "run_type": "backfill"},
        {"late": FOUR_DAYS, "clear_number": 1},
        # Airflow dates its only run at the start date of the DAG: it is due when the DAG is unpaused.
        {"late": FOUR_DAYS, "schedule": "@once"},
    ],
    ids=["in time", "by a person", "by a DAG", "a backfill", "cleared", "once"],
)
def test_any_other_run_goes_on(tmp_path: Path, of_run: dict[str, Any]) -> None:
    with pytest.raises(HasBegun):
        execute(tmp_path, **of_run)
