"""In a real Airflow, the driver of a bridge starts after the restores, and runs well before the pause."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka_rescale.core.control.keys import CONTROL_TOPIC
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.reading.range_reader import read_ranges

from testbed.airflow_standalone import AirflowStandalone
from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.support.airflow.airflow_runs import assert_success
from tests.support.links import PACKAGE
from tests.support.ordered import AFTER, NAME, Ordered

pytestmark = [pytest.mark.system, pytest.mark.slow]
EXPAND, BRIDGE = f"expand_{NAME}", f"bridge_{NAME}"
RUN_SECONDS = 1100


@contextmanager
def live(directory: Path) -> Iterator[tuple[Ordered, AirflowStandalone]]:
    """Run producers that never stop or learn of new partitions, an application, and an Airflow that knows it."""
    with EmbeddedBroker(directory / "broker", heap="512m") as broker:
        ordered = Ordered(directory / "ordered", broker.bootstrap_servers)
        ordered.prepare()
        connections: dict[str, dict[str, object]] = {
            "kafka_default": {"conn_type": "kafka", "extra": ordered.client},
            "spark_default": {"conn_type": "spark", "host": "local[2]"},
        }
        found = {"LINKS": str(ordered.directory), "KAFKA_RESCALE_APPLICATIONS": str(ordered.directory)}
        env = {**found, "PYTHONPATH": PACKAGE}
        with (
            AirflowStandalone(directory / "airflow", connections=connections, env=env) as airflow,
            ordered.live(),
        ):
            yield ordered, airflow


def test_the_driver_of_a_bridge_starts_behind_the_restores_and_is_up_before_catch_up(tmp_path: Path) -> None:
    with live(tmp_path) as (ordered, airflow):
        client, connection = airflow.client, KafkaConnection(ordered.client)
        client.wait(lambda: client.runs(BRIDGE), "the bridge to wait for its time", RUN_SECONDS)
        run = client.trigger(EXPAND, {"target": AFTER, "dry_run": False, "approve_cutover": False})
        assert_success(client, EXPAND, run, RUN_SECONDS)
        pause = ordered.longest_gap_seconds
        said = words(connection)
        ordered.stop_sending()
        wait_until(lambda: ordered.is_all_seen, timeout=120, what="the last output")
        (carried,) = (each for each in client.runs(BRIDGE) if client.task_states(BRIDGE, each)["bridge"])
        assert_success(client, BRIDGE, carried, RUN_SECONDS)
        timings = ControlTopic(connection, NAME).read().journal
    assert timings is not None
    print(f"consumers of the output saw a pause of {pause:.1f} s; {timings.timings}")
    jobs = [job for job, _ in said]
    assert said.index(("restore/1", "done")) < jobs.index("bridge")
    assert said.index(("bridge", "ready")) < jobs.index("catch_up")
    assert ordered.wrong() == {}


def words(connection: KafkaConnection) -> list[tuple[str, str]]:
    """Return which job reported which state, in the order of the control topic's log."""
    admin = ClusterAdmin(connection)
    begins, ends = (read([CONTROL_TOPIC])[CONTROL_TOPIC] for read in (admin.begin_offsets, admin.end_offsets))
    found = []
    for record in read_ranges(connection, CONTROL_TOPIC, {0: (begins[0], ends[0])}):
        key, value = record.key(), record.value()
        assert isinstance(key, bytes)
        if key.startswith(f"{NAME}/result/".encode()) and value:
            result = json.loads(value)
            found.append((str(result["job"]), str(result["state"])))
    return found
