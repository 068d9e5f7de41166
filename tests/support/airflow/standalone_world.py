"""Small applications on one broker, and an Airflow that knows them all. One or two tests use each application."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kafka_rescale.core.application.windows import DAYS
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.records import Change
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.application.load import topology_of

from testbed.airflow_client import AirflowClient
from testbed.airflow_standalone import AirflowStandalone
from testbed.broker import EmbeddedBroker
from tests.support.airflow.recorded_notices import declared
from tests.support.airflow.statsd_server import StatsdServer
from tests.support.made_topics import make_topics
from tests.support.small_application import application, topic_configs, write
from tests.support.small_application import declared as small

ROOT = Path(__file__).resolve().parents[3]
PLAIN, GATED, SCHEDULED, NO_SPARK, BRIDGED = "plain", "gated", "scheduled", "sparkless", "bridged"
SCALED, NOT_SCALED = "scaled", "not-scaled"
NOTIFIED, CHAINED = "notified", "chained"
NAMES = (PLAIN, GATED, SCHEDULED, NO_SPARK, BRIDGED, SCALED, NOT_SCALED, NOTIFIED, CHAINED)


def repartitioned(name: str) -> dict[str, Any]:
    """What an application file declares if the producers of its customers can't be held."""
    customers = {"topic": f"{name}-customers", "policy": "repartitioned", "isolation_level": "read_committed"}
    return {
        "inputs": [{"topic": f"{name}-orders", "policy": "unkeyed"}, {**customers, "silent_seconds": 3}],
        "lifecycle": {
            **small(name)["lifecycle"],
            "start": f"true {{application_id}} {{input:{name}-customers}}",
        },
    }


def planned(name: str, **changes: Any) -> Plan:
    """The plan of its first expansion, from 4 partitions to 8."""
    declared = application(name, **changes)
    counts = dict.fromkeys(topic_configs(name), 4)
    return build_plan(declared, topology_of(declared), blue=name, generation=2, current=counts, target=8)


def lock_database(home: Path, seconds: float) -> None:
    """Lock Airflow's database for some seconds, so that no part of Airflow can write, as with a slow disk."""
    with closing(sqlite3.connect(home / "airflow.db", timeout=60, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        database.execute("ROLLBACK")


def closed_window() -> str:
    """Return a window on the weekday of the day before yesterday, which therefore opens only in some days."""
    return f"{DAYS[(datetime.now(UTC).weekday() - 2) % 7]} 00:00-24:00"


@dataclass
class World:
    """One broker and one Airflow for all tests of a file. Each test has an application of its own."""

    client: dict[str, str]
    airflow: AirflowClient
    airflow_home: Path
    applications: Path
    told: Path
    stats: StatsdServer

    def control(self, application: str) -> ControlTopic:
        return ControlTopic(KafkaConnection(self.client), application)

    def pretend_stopped(self, application: str) -> None:
        """Set the journal of an expansion as its cutover does when it stops the application."""

        def stopped(known: ControlState) -> Change:
            assert known.journal is not None
            now = now_ms()
            phase = known.journal.advanced(Phase.QUIESCING, now_ms=now, pause_started_ms=now, stop_asked=True)
            return {Concern.JOURNAL: phase}

        self.control(application).update(stopped)

    def shell(self, command: str, application: str, *options: str, fails: bool = False) -> str:
        """Run a command for an application in a shell of its own, and return what it prints."""
        file = self.applications / f"{application}.yaml"
        settings = self.told.with_name("client.json")
        settings.write_text(json.dumps(self.client))
        line = [sys.executable, "-m", "kafka_rescale", command, str(file), "--config", str(settings), *options]
        env = {**os.environ, "PYTHONPATH": str(ROOT / "plugins"), "COLUMNS": "400"}
        done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode != 0) == fails, done.stderr
        return done.stdout + done.stderr


@contextmanager
def standalone_world(directory: Path) -> Iterator[World]:
    """Start the broker and Airflow with all applications, in a directory of their own."""
    applications = directory / "applications"
    applications.mkdir()
    write(applications, PLAIN)
    write(applications, GATED, cutover_windows={"windows": [closed_window()]})
    write(applications, SCHEDULED, schedule="@yearly")
    write(applications, NO_SPARK, spark_conn_id="spark_that_is_missing")
    write(applications, BRIDGED, **repartitioned(BRIDGED))
    autoscaling = {"partition.autoscaling.enabled": True, "autoscaling_bounds": {"approval_above": 4}}
    write(applications, SCALED, **repartitioned(SCALED), **autoscaling)
    write(applications, NOT_SCALED)
    told_file = directory / "told.jsonl"
    write(applications, NOTIFIED, notifications=[declared(told_file)], pause_alert_seconds=1)
    write(applications, CHAINED, chain="line", snapshots={"location": str(directory / "snapshots")})
    dags = directory / "dags"
    shutil.copytree(ROOT / "dags", dags)
    for probe in ("gate_probe.py", "pause_probe.py"):
        shutil.copy(ROOT / "tests/support/airflow/dags" / probe, dags)
    with EmbeddedBroker(directory / "broker", heap="512m") as broker, StatsdServer() as stats:
        client = broker.client_config()
        for name in NAMES:
            make_topics(client, name)
        connections = {
            "kafka_default": {"conn_type": "kafka", "extra": client},
            "spark_default": {"conn_type": "spark", "host": "local[1]"},
        }
        # The notifier is in the tests' package.
        path = f"{ROOT / 'plugins'}:{ROOT}"
        # A DAG that is no longer in its file is gone within seconds, instead of some minutes.
        stale = {
            "AIRFLOW__DAG_PROCESSOR__STALE_DAG_THRESHOLD": "10",
            "AIRFLOW__SCHEDULER__PARSING_CLEANUP_INTERVAL": "5",
        }
        env = {
            "KAFKA_RESCALE_APPLICATIONS": str(applications),
            "PYTHONPATH": path,
            **stats.settings(with_tags=True),
            **stale,
        }
        with AirflowStandalone(directory / "airflow", dags=dags, connections=connections, env=env) as airflow:
            yield World(client, airflow.client, airflow.directory, applications, told_file, stats)
