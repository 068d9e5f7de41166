"""A backfill of seven days by Airflow's own command, while an expansion holds the lease."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic

from testbed.airflow_standalone import AirflowStandalone
from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.support.airflow.airflow_runs import failures
from tests.support.application_files import write_application
from tests.support.snapshot_world import FIRST, STORE, SnapshotWorld, orders_of_days

pytestmark = [pytest.mark.system, pytest.mark.slow]

NAME = "snapshotted"
DAG = f"snapshot_{NAME}"
DAYS = [FIRST.minus(-n) for n in range(7)]
SECONDS = 900
World = tuple[SnapshotWorld, AirflowStandalone]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("world")
    with EmbeddedBroker(directory / "broker", heap="512m") as broker:
        made = SnapshotWorld(broker.client_config(), NAME, directory / "snapshots")
        made.create(orders_of_days(8), transactional=True)
        write_file(directory / "applications", made)
        connections = {
            "kafka_default": {"conn_type": "kafka", "extra": dict(made.client)},
            "spark_default": {"conn_type": "spark", "host": "local[1]"},
        }
        env = {"KAFKA_RESCALE_APPLICATIONS": str(directory / "applications")}
        with AirflowStandalone(directory / "airflow", connections=connections, env=env) as airflow:
            yield made, airflow


def write_file(directory: Path, world: SnapshotWorld) -> None:
    write_application(
        directory,
        application_id=NAME,
        inputs=[{"topic": world.input, "policy": "fixed"}],
        outputs=[],
        subtopologies=[{"sources": [world.input], "stores": [STORE]}],
        stores=[{"name": STORE, "type": "timestamped-key-value"}],
        snapshots={
            "location": str(world.directory),
            "grace_minutes": 10,
            "stores": [{"name": STORE, "key": "string", "value": "long"}],
        },
    )


def test_a_backfill_builds_the_days_that_are_missing(world: World) -> None:
    made, airflow = world
    airflow.client.await_dag(DAG)
    assert airflow.client.import_errors() == {}
    control = ControlTopic(KafkaConnection(dict(made.client)), NAME)
    lease = Lease(owner=f"expand_{NAME}/manual__1", epoch=1, target=8, expires_at_ms=2**60)
    control.update(lambda _: {"lease": lease})

    backfill(airflow)

    airflow.client.wait(lambda: len(runs(airflow)) == len(DAYS), "a run for every day", SECONDS)
    airflow.client.wait(lambda: set(runs(airflow).values()) <= {"success", "failed"}, "their ends", SECONDS)
    assert set(runs(airflow).values()) == {"success"}, _failures(airflow)
    assert [made.totals(day) for day in DAYS] == [made.expected(day) for day in DAYS]
    state = control.read()
    assert state.lease == lease
    read = [state.results[f"snapshot/{day}"].records for day in DAYS]
    assert max(read) < 60, "one after the other, each day reads its own records"


def test_a_backfill_from_the_form_of_the_ui_builds_days_anew(world: World) -> None:
    made, airflow = world
    lost = DAYS[2:4]
    for day in lost:
        shutil.rmtree(made.directory / NAME / STORE / f"date={day}")
    before = set(airflow.client.runs(DAG))
    airflow.client.wait(lambda: not airflow.client.has_running_backfill(DAG), "the end of the first one", SECONDS)
    airflow.client.backfill(
        DAG, f"{lost[0]}T00:00:00Z", f"{lost[-1]}T00:00:00Z", reprocess_behavior="completed", max_active_runs=1
    )
    again = {run for run in before if any(str(day) in run for day in lost)}
    assert len(again) == len(lost)
    days = [made.directory / NAME / STORE / f"date={day}" for day in lost]
    airflow.client.wait(lambda: all(day.exists() for day in days), "the days that were lost", SECONDS)
    airflow.client.wait(
        lambda: {runs(airflow)[run] for run in again} <= {"success", "failed"}, "their ends", SECONDS
    )
    assert {runs(airflow)[run] for run in again} == {"success"}, _failures(airflow)
    assert [made.totals(day) for day in DAYS] == [made.expected(day) for day in DAYS]


def backfill(airflow: AirflowStandalone) -> None:
    """Ask for the days on the command line, and try again if the scheduler has locked the SQLite database."""
    dates = ["--from-date", str(DAYS[0]), "--to-date", str(DAYS[-1])]
    command = [sys.executable, "-m", "airflow", "backfill", "create", "--dag-id", DAG, *dates]
    command += ["--max-active-runs", "1"]
    said: list[str] = []

    def done() -> bool:
        process = subprocess.run(
            command, env=airflow.environment, capture_output=True, text=True, timeout=120, check=False
        )
        said.append(process.stdout + process.stderr)
        assert process.returncode == 0 or "database is locked" in said[-1], said[-1][-3000:]
        return process.returncode == 0

    airflow.client.pause(DAG, False)
    wait_until(done, timeout=300, what="the backfill to be created")


def runs(airflow: AirflowStandalone) -> dict[str, str]:
    """The state of every run of the backfill."""
    return {k: v["state"] for k, v in airflow.client.runs(DAG).items() if v["run_type"] == "backfill"}


def _failures(airflow: AirflowStandalone) -> str:
    failed = [run for run, state in runs(airflow).items() if state == "failed"]
    return "\n".join(failures(airflow.client, DAG, run) for run in failed[:1])
