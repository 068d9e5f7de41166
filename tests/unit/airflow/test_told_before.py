"""A failure that goes on is told once, if its DAG runs every few minutes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from kafka_rescale.airflow.dags.bridge import bridge_dag
from kafka_rescale.airflow.dags.expansion import expansion_dag
from kafka_rescale.airflow.dags.factory import build_dags
from kafka_rescale.airflow.dags.watch import watch_dag
from kafka_rescale.core.errors import Outage, Refused, UnsafeState

from tests.support.airflow.recorded_notices import declared, told
from tests.support.application_files import write_application

if TYPE_CHECKING:
    from airflow.sdk import DAG

APPLICATION = "orders-app"
KINDS = {"watch": watch_dag, "bridge": bridge_dag, "expand": expansion_dag}


class Runs:
    """The runs of a DAG, one after the other, with what Airflow knows of the one before."""

    def __init__(self, dag: DAG) -> None:
        self.dag = dag
        self.ended: list[Any] = []
        self.stored: dict[tuple[str, str], Any] = {}
        self.answers = True

    def fail(self, task_id: str, error: Exception | None) -> None:
        """Let one more run fail. Without an error its worker was killed, and nothing can be stored."""
        run_id, ended_at = f"scheduled__{len(self.ended)}", datetime.now(UTC)
        run = SimpleNamespace(dag_id=self.dag.dag_id, run_id=run_id, state="failed", end_date=ended_at)
        ti = SimpleNamespace(
            get_previous_dagrun=self._previous,
            xcom_pull=lambda task_ids, key, run_id: [self.stored.get((run_id, each)) for each in task_ids],
            xcom_push=lambda key, value: self._store((run.run_id, task_id), value, may=error is not None),
        )
        more = {"exception": error} if error is not None else {}
        context: Any = {"dag": self.dag, "task": self.dag.get_task(task_id), "ti": ti, "dag_run": run, **more}
        for callback in self.dag.get_task(task_id).on_failure_callback:
            callback(context)
        self.ended.append(run)

    def succeed(self) -> None:
        """Let one more run succeed."""
        self.ended.append(SimpleNamespace(run_id=f"scheduled__{len(self.ended)}", state="success"))

    def _previous(self) -> Any:
        if not self.answers:
            raise ConnectionError("no API server")
        return self.ended[-1] if self.ended else None

    def _store(self, key: tuple[str, str], value: Any, *, may: bool) -> None:
        assert may
        self.stored[key] = value


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "told.jsonl"


@pytest.fixture
def runs(request: pytest.FixtureRequest, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    directory = tmp_path / "applications"
    directory.mkdir()
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(directory))
    write_application(directory, notifications=[declared(file)])
    kind = getattr(request, "param", "bridge")
    return Runs(build_dags(KINDS[kind], kind)[f"{kind}_{APPLICATION}"])


def outage(seconds: int = 30) -> Outage:
    return Outage("brokers", found=f"no answer within {seconds} s", expected="an answer", remedy="Wait.")


def lost() -> UnsafeState:
    return UnsafeState("bridge", found="no position", expected="one", remedy="Look.")


@pytest.mark.parametrize(("runs", "task"), [("watch", "watch"), ("bridge", "due")], indirect=["runs"])
def test_brokers_that_are_away_for_a_night_are_told_once(runs: Runs, task: str, file: Path) -> None:
    for seconds in range(30, 35):
        runs.fail(task, outage(seconds))
    assert len(told(file)) == 1
    runs.succeed()
    runs.fail(task, outage())
    assert len(told(file)) == 2


def test_a_bridge_that_has_worked_for_hours_is_told_whatever_was_told_before(runs: Runs, file: Path) -> None:
    """It succeeds only at its end, weeks later."""
    for _ in range(2):
        runs.fail("bridge", RuntimeError("driver lost"))
    runs.ended[-1].end_date -= timedelta(days=6)
    for _ in range(2):
        runs.fail("bridge", RuntimeError("no Spark master any more"))
    assert len(told(file)) == 2


@pytest.mark.parametrize("runs", ["watch"], indirect=True)
def test_what_is_refused_with_another_figure_is_told(runs: Runs, file: Path) -> None:
    for partitions in (8, 8, 16):
        runs.fail("watch", Refused("t1", found=f"{partitions} partitions", expected="4", remedy="Trigger it."))
    assert ["16 partitions" in notice["text"] for notice in told(file)] == [False, True]


def test_another_failure_is_told_also_in_between(runs: Runs, file: Path) -> None:
    for _ in range(3):
        runs.fail("due", outage())
        runs.fail("bridge", lost())
    assert ["no answer" in notice["text"] for notice in told(file)] == [True, False]


def test_errors_of_airflow_are_told_by_their_kind(runs: Runs, file: Path) -> None:
    runs.fail("bridge", RuntimeError("can't run /tmp/kafka-rescale-x1/spark-submit"))
    runs.fail("bridge", RuntimeError("can't run /tmp/kafka-rescale-abc/spark-submit"))
    runs.fail("bridge", ValueError("something else"))
    assert len(told(file)) == 2


def test_workers_that_are_killed_again_and_again_are_told_once(runs: Runs, file: Path) -> None:
    for _ in range(3):
        runs.fail("bridge", None)
    assert len(told(file)) == 1
    runs.fail("bridge", outage())
    assert len(told(file)) == 2


def test_a_failure_is_told_if_airflow_does_not_say_what_was_before(runs: Runs, file: Path) -> None:
    runs.fail("due", outage())
    runs.answers = False
    runs.fail("due", outage())
    assert len(told(file)) == 2


@pytest.mark.parametrize("runs", ["expand"], indirect=True)
def test_every_failed_expansion_is_told(runs: Runs, file: Path) -> None:
    for _ in range(2):
        runs.fail("preflight", outage())
    assert len(told(file)) == 2
