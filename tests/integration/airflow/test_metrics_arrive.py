"""Metrics arrive at a StatsD server and at an OpenTelemetry receiver, with the names in the documents."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.airflow.otlp_server import OtlpServer
from tests.support.airflow.statsd_server import StatsdServer

ROOT = Path(__file__).resolve().parents[3]
KIP_878 = {
    "stream-subtopology-metrics.shop.0.current-subtopology-parallelism": 4,
    "stream-subtopology-metrics.shop.0.expected-subtopology-parallelism": 8,
    "stream-client-metrics.shop.num-autoscaling-failures": 3,
}
PAUSES = {
    "kafka-rescale.shop.downtime-seconds.drain": 1.25,
    "kafka-rescale.shop.downtime-seconds.total": 4.5,
    "kafka-rescale.shop.pause-seconds": 75.5,
}
LAGS = {"kafka-rescale.shop.lag_gate.1.largest-lag": 70, "kafka-rescale.shop.lag_gate.1.partitions-behind": 2}
ALL = {**KIP_878, **PAUSES, **LAGS}

pytestmark = pytest.mark.integration


def report(directory: Path, settings: Mapping[str, str]) -> None:
    """Let a process of its own report every metric."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "OTEL"))}
    path = os.pathsep.join((str(ROOT / "plugins"), str(ROOT), inherited.get("PYTHONPATH", "")))
    env = {**inherited, "PYTHONPATH": path, "AIRFLOW_HOME": str(directory), **settings}
    command = [sys.executable, "-m", "tests.support.airflow.emit_metrics", str(directory)]
    subprocess.run(command, env=env, check=True, timeout=100)


def test_a_statsd_server_gets_them_all_behind_the_prefix_of_airflow(tmp_path: Path) -> None:
    with StatsdServer() as server:
        report(tmp_path, server.settings(prefix="company"))
    assert {name: server.gauges.get(f"company.{name}") for name in ALL} == ALL


# In `make test`, S/test_airflow_standalone.py has names with tags at a StatsD server.
@pytest.mark.slow
def test_a_statsd_server_gets_their_tags_where_airflow_writes_them_into_the_name(tmp_path: Path) -> None:
    with StatsdServer() as server:
        report(tmp_path, server.settings(with_tags=True))
    assert {name: server.gauges.get(f"airflow.{name}") for name in ALL} == ALL
    tags = {name: server.tags[f"airflow.{name}"] for name in ALL}
    subtopology = "stream-subtopology-metrics.shop.0.current-subtopology-parallelism"
    assert tags[subtopology] == {"application-id": "shop", "subtopology-id": "0"}
    assert tags["stream-client-metrics.shop.num-autoscaling-failures"] == {"client-id": "shop"}
    assert tags["kafka-rescale.shop.lag_gate.1.largest-lag"] == {"application-id": "shop", "gate": "lag_gate/1"}


def test_opentelemetry_gets_them_all_with_their_tags(tmp_path: Path) -> None:
    with OtlpServer() as server:
        report(tmp_path, server.settings())
    found = {name: value for (name, _), value in server.gauges.items()}
    assert {name: found.get(f"airflow.{name}") for name in ALL} == ALL
    tags = {name: dict(tags) for name, tags in server.gauges}
    subtopology = "airflow.stream-subtopology-metrics.shop.0.current-subtopology-parallelism"
    assert tags[subtopology] == {"application-id": "shop", "subtopology-id": "0"}
    assert tags["airflow.kafka-rescale.shop.lag_gate.1.largest-lag"]["gate"] == "lag_gate/1"
