"""Pipelines run on their schedule, and a real Airflow reports them and a watch to OpenTelemetry."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.assignment.thread_states import State
from kafka_rescale.core.control.processing import ClientRecord
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.processing.stream_threads import add_stream_thread, remove_stream_thread

from testbed.airflow_standalone import AirflowStandalone
from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.support.airflow.airflow_runs import assert_success
from tests.support.airflow.otlp_server import OtlpServer
from tests.support.airflow.standalone_world import repartitioned
from tests.support.made_topics import make_topics
from tests.support.processing.failing_pipeline import INPUT, OUTPUT
from tests.support.processing.growing import Growing
from tests.support.small_application import write
from tests.support.words_pipeline import write_pipeline

pytestmark = [pytest.mark.system, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
RUN_SECONDS = 600
HOURS, AGAIN, FAILING, WATCHED = "hours", "hours-again", "failing", "watched"
FIRST = datetime(2025, 6, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@dataclass
class World:
    """Two pipelines, a watched application, an Airflow that runs them, and the receiver of its metrics.

    :param hours: the pipeline that runs every hour.
    """

    connection: KafkaConnection
    hours: Growing
    airflow: AirflowStandalone
    measured: OtlpServer

    def produce(self, topic: str, records: Sequence[tuple[bytes, bytes, int, int]]) -> None:
        """Write records. A record is key, value, partition, and milliseconds since the epoch."""
        producer = Producer(self.connection.client(**{"enable.idempotence": True}))
        for key, value, partition, at_ms in records:
            producer.produce(topic, value, key, partition, timestamp=at_ms)
        assert producer.flush(30) == 0

    def value(self, name: str, **tags: str) -> float | None:
        """The newest value of a gauge with exactly these tags. Their names have underscores for dashes."""
        wanted = frozenset((key.replace("_", "-"), value) for key, value in tags.items())
        return self.measured.gauges.get((f"airflow.{name}", wanted))

    def await_value(self, wanted: float, name: str, **tags: str) -> None:
        """Wait until a gauge with exactly these tags has a value."""
        self.airflow.client.wait(
            lambda: self.value(name, **tags) == wanted,
            f"{name} {tags} to be {wanted:g} among {self.measured.gauges}",
            RUN_SECONDS,
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("measured")
    applications = directory / "applications"
    with EmbeddedBroker(directory / "broker", heap="512m") as broker, OtlpServer() as measured:
        connection = KafkaConnection(broker.client_config())
        hours = Growing(connection, HOURS, directory / "state", linear=False)
        hours.create()
        for topic in (AGAIN, INPUT, OUTPUT):
            hours.admin.ensure_topic(topic, 2, 1, {"retention.ms": "-1"})
        one = {"num.stream.threads": 1}
        on_schedule = {"schedule": "@hourly", "backfill": {"outputs": {f"{HOURS}-folded": AGAIN}}}
        write_pipeline(applications, **hours.declared | one | on_schedule)
        write_pipeline(
            applications,
            **{"application_id": FAILING, "state.dir": str(directory / "state"), **one},
            **{
                "pipeline": "tests.support.processing.failing_pipeline:failing",
                "uncaught.exception.handler": "tests.support.processing.failing_pipeline:handler",
            },
        )
        make_topics(dict(connection.config), WATCHED)
        autoscaling = {"partition.autoscaling.enabled": True, "partition.autoscaling.timeout.ms": 1}
        write(applications, WATCHED, **repartitioned(WATCHED), **autoscaling)
        connections = {
            "kafka_default": {"conn_type": "kafka", "extra": dict(connection.config)},
            "spark_default": {"conn_type": "spark", "host": "local[1]"},
        }
        # The pipelines are in the tests' package.
        path = f"{ROOT / 'plugins'}:{ROOT}"
        env = {"KAFKA_RESCALE_APPLICATIONS": str(applications), "PYTHONPATH": path, **measured.settings()}
        with AirflowStandalone(directory / "airflow", connections=connections, env=env) as airflow:
            yield World(connection, hours, airflow, measured)


def within(outputs: dict[bytes, list[Any]], start: datetime, end: datetime) -> dict[bytes, list[Any]]:
    """The results whose timestamps are in an interval."""
    first, last = (at.timestamp() * 1_000 for at in (start, end))
    found = {key: [each for each in its if first <= each[1] < last] for key, its in outputs.items()}
    return {key: its for key, its in found.items() if its}


def runs_of(world: World, dag: str, kind: str) -> dict[str, str]:
    """The states of the runs of a kind, by run id."""
    found = world.airflow.client.runs(dag).items()
    return {run: str(each["state"]) for run, each in found if each["run_type"] == kind}


def test_a_pipeline_runs_by_its_schedule(world: World) -> None:
    client, dag = world.airflow.client, f"process_{HOURS}-app"
    started_ms = int(FIRST.timestamp() * 1_000)
    world.produce(
        HOURS,
        [(b"k%d" % (n % 6), b"%d" % n, n % 2, started_ms + n * 60_000) for n in range(180)],
    )
    client.pause(dag, False)
    client.wait(lambda: runs_of(world, dag, "scheduled"), "the run of its schedule", RUN_SECONDS)
    (run,) = runs_of(world, dag, "scheduled")
    assert_success(client, dag, run, RUN_SECONDS)
    assert sum(map(len, world.hours.outputs().values())) == 180
    assert client.runs(dag).keys() == {run}, "nobody has triggered one"


def test_a_backfill_of_the_command_line_processes_its_intervals_once_more(world: World) -> None:
    """The backfill is for two of the three hours. Each has a generation of its own."""
    client, dag = world.airflow.client, f"process_{HOURS}-app"
    outputs, state = world.hours.outputs(), world.hours.state()
    start, end = FIRST + HOUR, FIRST + 3 * HOUR
    dates = ["--from-date", start.isoformat(), "--to-date", (end - HOUR).isoformat()]
    command = [sys.executable, "-m", "airflow", "backfill", "create", "--dag-id", dag, *dates]
    command += ["--max-active-runs", "1"]

    def created() -> bool:
        """Create a backfill, and try again if the scheduler has locked the SQLite database."""
        done = subprocess.run(
            command, env=world.airflow.environment, capture_output=True, text=True, timeout=240, check=False
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0 or "database is locked" in said, said[-3_000:]
        return done.returncode == 0

    wait_until(created, timeout=RUN_SECONDS, what="the backfill to be created")
    client.wait(lambda: len(runs_of(world, dag, "backfill")) == 2, "a run for each hour", RUN_SECONDS)
    for run in runs_of(world, dag, "backfill"):
        assert_success(client, dag, run, RUN_SECONDS)
    client.pause(dag)
    assert world.hours.outputs("again") == within(outputs, start, end)
    assert sum(map(len, world.hours.outputs("again").values())) == 120
    assert (world.hours.outputs(), world.hours.state()) == (outputs, state)


def test_without_its_last_thread_a_client_stays_running_and_goes_on_with_a_new_one(world: World) -> None:
    """KIP-663, live: RUNNING without a thread, REBALANCING with a new one, RUNNING when it processes again."""
    assert processed(world, 2, b"1", b"2") == 2
    assert (the_client(world).state, len(the_client(world).threads)) == (State.RUNNING, 1)
    world.await_value(0, f"stream-metrics.{FAILING}.failed-stream-threads", client_id=FAILING)

    removed = remove_stream_thread(FAILING, world.connection)
    assert removed == f"{FAILING}-StreamThread-1"
    assert processed(world, 2, b"3") == 2
    assert (the_client(world).state, the_client(world).threads) == (State.RUNNING, ())

    assert add_stream_thread(FAILING, world.connection) == removed
    assert the_client(world).state is State.REBALANCING
    assert processed(world, 3) == 3
    assert the_client(world).state is State.RUNNING


def test_the_death_of_the_last_thread_is_counted_and_ends_the_client(world: World) -> None:
    dag = f"process_{FAILING}"
    world.produce(INPUT, [(b"k", b"no number", 0, 0)])
    run = world.airflow.client.trigger(dag)
    assert world.airflow.client.wait_for_run(dag, run, timeout=RUN_SECONDS) == "failed"
    assert (the_client(world).state, the_client(world).threads) == (State.ERROR, ())
    assert the_client(world).failed_stream_threads == 1
    world.await_value(1, f"stream-metrics.{FAILING}.failed-stream-threads", client_id=FAILING)
    assert add_stream_thread(FAILING, world.connection) is None


def the_client(world: World) -> ClientRecord:
    """The only client of the failing pipeline."""
    found = ControlTopic(world.connection, FAILING).read().processing
    assert found is not None
    return found.the_client(None)


def processed(world: World, wanted: int, *values: bytes) -> int:
    """Write records, let one run end, and return the number of results."""
    world.produce(INPUT, [(b"k", value, 0, 0) for value in values])
    dag = f"process_{FAILING}"
    assert_success(world.airflow.client, dag, world.airflow.client.trigger(dag), RUN_SECONDS)
    ends = ClusterAdmin(world.connection).end_offsets([OUTPUT])[OUTPUT]
    return len(list(world.hours.records(OUTPUT))) if sum(ends.values()) >= wanted else 0


def test_the_metrics_of_a_watch_arrive_with_values_and_tags(world: World) -> None:
    """KIP-878: the expansion never runs, the timeout passes, and a metric counts that the watch gave up."""
    client, watch = world.airflow.client, f"watch_{WATCHED}"
    group = f"stream-subtopology-metrics.{WATCHED}.1"
    tags = {"application_id": WATCHED, "subtopology_id": "1"}
    failures = f"stream-client-metrics.{WATCHED}.num-autoscaling-failures"
    client.wait_for_run(watch, client.trigger(watch), timeout=RUN_SECONDS)
    world.await_value(4, f"{group}.current-subtopology-parallelism", **tags)
    world.await_value(4, f"{group}.expected-subtopology-parallelism", **tags)
    world.await_value(0, failures, client_id=WATCHED)

    ClusterAdmin(world.connection).grow_topic(f"{WATCHED}-customers", 8)
    for _ in range(4):
        client.wait_for_run(watch, client.trigger(watch), timeout=RUN_SECONDS)
        if value := world.value(failures, client_id=WATCHED):
            assert value == 1
            break
    world.await_value(8, f"{group}.expected-subtopology-parallelism", **tags)
    world.await_value(4, f"{group}.current-subtopology-parallelism", **tags)
    world.await_value(1, failures, client_id=WATCHED)
    client.pause(watch)
    assert client.runs(f"expand_{WATCHED}") == {}
