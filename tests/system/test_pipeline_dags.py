"""A pipeline's DAGs in a real Airflow with Spark: it grows under load, and threads and clients come and go."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.airflow_standalone import AirflowStandalone
from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.support.airflow.airflow_runs import assert_success
from tests.support.kills import killed, processes_with
from tests.support.processing.growing import Growing
from tests.support.processing.growing_control import both, live_and_control, moved_between, same_results
from tests.support.processing.growing_load import T0, under_load
from tests.support.processing.rack_rule import ASKED
from tests.support.words_pipeline import write_pipeline

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[2]
RUN_SECONDS = 600
EAST, WEST = "east", "west"
AGAIN = "moves-again"


@dataclass
class World:
    """A pipeline on two clients, a control that never grows, and an Airflow that runs the pipeline.

    :param control: gets the same input. The test itself runs it.
    :param asked: file with what the rule for racks was asked.
    """

    live: Growing
    control: Growing
    airflow: AirflowStandalone
    asked: Path

    @property
    def dag(self) -> str:
        return f"process_{self.live.application.application_id}"

    def run(self, **params: Any) -> str:
        """Make one whole run, and return its id."""
        run_id = self.airflow.client.trigger(self.dag, params)
        assert_success(self.airflow.client, self.dag, run_id, RUN_SECONDS)
        return run_id

    def begin(self, change: str, **params: Any) -> tuple[str, str]:
        """Trigger the DAG of an operator, and return the ids of the DAG and of the run."""
        dag = f"{change}_{self.live.application.application_id}"
        self.airflow.client.await_dag(dag)
        return dag, self.airflow.client.trigger(dag, params)

    def await_log(self, run: tuple[str, str], text: str) -> None:
        """Wait until the log of a run's operator has some text."""
        client = self.airflow.client
        client.wait_for_task(*run, "change", states={"running", "success", "failed"}, timeout=RUN_SECONDS)
        client.wait(lambda: text in client.log(*run, "change"), f"{text!r} in its log", RUN_SECONDS)

    @property
    def known(self) -> int:
        """The number of partitions of the input."""
        return self.live.admin.describe_topics([self.live.topic])[self.live.topic].partitions

    @property
    def processing(self) -> Processing:
        """The assignment of the last run."""
        found = self.live.control.read().processing
        assert found is not None
        return found

    @property
    def threads(self) -> set[str]:
        """The names of the stream threads."""
        return {thread.name for thread in self.processing.threads}

    def assert_same_results(self) -> None:
        """Let the control process the same input, and assert that both have the same results."""
        self.run()
        self.control.run()
        same_results(self.live, self.control, processors=self.live.counts.count)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("pipeline")
    with EmbeddedBroker(directory / "broker", heap="512m") as broker:
        connection = KafkaConnection(broker.client_config())
        live, control = live_and_control(
            connection, "moves", directory, clients=(EAST, WEST), acceptable_lag=10_000, settle_ms=5_000
        )
        live.admin.ensure_topic(AGAIN, 2, 1, {"retention.ms": "-1"})
        declared = live.declared | {
            "clients": [client | {"rack.id": client["client.id"]} for client in live.declared["clients"]],
            "rack.standby.task.assignor": "tests.support.processing.rack_rule:WestOnly",
            "uncaught.exception.handler": "tests.support.processing.failing_pipeline:handler",
            "num.standby.replicas": 1,
            "backfill": {"outputs": {f"{live.topic}-folded": AGAIN}},
        }
        applications = directory / "applications"
        write_pipeline(applications, **{"state.dir": None}, **declared)
        connections = {
            "kafka_default": {"conn_type": "kafka", "extra": dict(connection.config)},
            "spark_default": {"conn_type": "spark", "host": "local[1]"},
        }
        # The pipeline is in the tests' package.
        path = f"{ROOT / 'plugins'}:{ROOT}"
        asked = directory / "asked"
        env = {"KAFKA_RESCALE_APPLICATIONS": str(applications), "PYTHONPATH": path, ASKED: str(asked)}
        dags = directory / "dags"
        shutil.copytree(ROOT / "dags", dags)
        shutil.copy(ROOT / "tests/support/airflow/dags/pipeline_changes.py", dags)
        with AirflowStandalone(directory / "airflow", dags=dags, connections=connections, env=env) as airflow:
            yield World(live, control, airflow, asked)


def kill_drivers(run_id: str) -> None:
    """SIGKILL the drivers of a run as soon as there is one."""
    wait_until(
        lambda: killed(processes_with("spark_jobs/process.py", run_id)), timeout=RUN_SECONDS, what="a driver"
    )


# In `make test`, I/test_growing_pipeline.py adds processors, under load and beside kills, without Airflow. The
# tests below run the pipeline in Airflow.
@pytest.mark.slow
def test_partitions_and_processors_grow_under_load_and_a_driver_is_killed(world: World) -> None:
    live, client = world.live, world.airflow.client
    with under_load(live.connection, (live.topic, world.control.topic), per_second=100) as sent:
        world.run()
        assert set(live.owners().values()) == {EAST, WEST}
        live.admin.grow_topic(live.topic, 8)
        world.run(expand_processors=4)
        assert (live.counts.initial, live.counts.count, live.counts.expanding_to) == (2, 2, 4)
        run_id = client.trigger(world.dag)
        kill_drivers(run_id)
        assert_success(client, world.dag, run_id, RUN_SECONDS)
        for _ in range(5):
            if live.counts.count == 4:
                break
            world.run()
    assert (live.counts.initial, live.counts.count, live.counts.expanding_to) == (2, 4, 0)
    assert sum(each.failed_stream_threads for each in world.processing.clients) >= 1
    world.assert_same_results()
    assert sum(map(len, world.control.outputs().values())) == sum(sent) > 1_000
    assert moved_between(live, {0, 1}) == set()


@pytest.fixture(scope="module")
def processed(world: World) -> None:
    """Let it have processed records, if no test before has done so."""
    if world.live.control.read().processing is None:
        both(world.live, world.control, world.known, range(800))
        world.run()


@pytest.mark.usefixtures("processed")
def test_standbys_are_on_the_racks_that_the_users_class_allows(world: World) -> None:
    assert "0_0, 0_1" in world.asked.read_text()
    assert all(line.endswith(" on east, west") for line in world.asked.read_text().splitlines())
    clients = world.processing.clients
    tasks = {client.client_id: (set(map(str, client.active)), set(client.standbys)) for client in clients}
    assert all(active for active, _ in tasks.values())
    # By default, the tasks of the west would have standbys in the east.
    assert {client: keep for client, (_, keep) in tasks.items()} == {EAST: set(), WEST: tasks[EAST][0]}


@pytest.fixture(scope="module")
def warm(world: World, processed: None) -> None:
    """Wait until standbys have everything that was processed so far."""
    live, client = world.live, world.airflow.client
    keep_warm = f"keep_warm_{live.application.application_id}"
    run_id = client.trigger(keep_warm)
    assert_success(client, keep_warm, run_id, RUN_SECONDS)
    client.pause(keep_warm)


@pytest.mark.usefixtures("warm")
def test_standbys_are_kept_warm(world: World) -> None:
    live = world.live
    kept = [int(task.removeprefix("0_")) for task, owner in live.owners().items() if owner == EAST]
    assert kept
    for number in kept:
        assert live.saved(WEST, number) == live.state()[number]


# In `make test`, I/test_several_clients.py::test_a_lost_client_loses_its_tasks_to_warm_standbys
@pytest.mark.slow
@pytest.mark.usefixtures("warm")
def test_standbys_take_over_when_a_client_is_lost(world: World) -> None:
    live = world.live
    shutil.rmtree(live.state_dir / EAST)
    both(live, world.control, world.known, range(200))
    world.assert_same_results()
    assert set(live.owners().values()) == {WEST}
    run, results = world.processing.run, live.control.read().results.values()
    said = [result.detail for result in results if result.run == run]
    assert said
    assert all(" 0 restored" in each for each in said), said


# In `make test`, I/test_threads_come_and_go.py adds and removes threads; U/test_process_dag.py shows that the form
# reaches the same functions.
@pytest.mark.slow
def test_a_thread_is_added_and_removed_by_the_form(world: World) -> None:
    live, known = world.live, world.known
    world.run()
    before = world.threads
    world.run(add_stream_thread=WEST)
    (added,) = world.threads - before
    assert added.startswith(f"{WEST}-StreamThread-")
    both(live, world.control, known, range(200, 300))
    world.assert_same_results()
    world.run(remove_stream_thread=WEST)
    assert len(world.threads) == len(before)
    both(live, world.control, known, range(300, 400))
    world.assert_same_results()


def results_of_interval(times: Sequence[int], start: int, end: int) -> int:
    """How many results of a key have a time in an interval. A result has the time of the newest record so far."""
    made = newest = 0
    for at in times:
        if at < end:
            newest = max(newest, at)
            made += newest >= start
    return made


@pytest.mark.usefixtures("processed")
def test_a_past_interval_is_processed_once_more_and_nothing_else_is_touched(world: World) -> None:
    live = world.live
    outputs, state = live.outputs(), live.state()
    start, end = T0 + 2_000, T0 + 8_000
    interval_start, interval_end = (datetime.fromtimestamp(ms / 1_000, UTC).isoformat() for ms in (start, end))
    world.run(interval_start=interval_start, interval_end=interval_end)
    again = live.outputs("again")
    assert all(start <= timestamp < end for results in again.values() for _, timestamp, _ in results)
    times: dict[bytes, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for m in live.records(live.topic):
        times[m.key()][m.partition()].append(m.timestamp()[1])
    # For a key that the growth has moved, this is not the order in which its records came.
    stayed = {
        key: its for key, by_partition in times.items() for its in by_partition.values() if len(by_partition) == 1
    }
    assert {key: len(again.get(key, ())) for key in stayed} == {
        key: results_of_interval(its, start, end) for key, its in stayed.items()
    }
    assert again, "the interval has records"
    assert (live.outputs(), live.state()) == (outputs, state)


# In `make test`, I/test_process_job.py: adding blocks until the thread has started, removing until it is gone
@pytest.mark.slow
def test_operators_wait_until_a_thread_has_started_or_is_gone(world: World) -> None:
    world.run()
    client, before = world.airflow.client, world.threads
    adding = world.begin("add_thread")
    world.await_log(adding, "to start: it is STARTING")
    assert client.task_states(*adding) == {"change": "running"}
    world.run()
    assert_success(client, *adding, RUN_SECONDS)
    (added,) = world.threads - before
    assert client.xcom(*adding, "change") == added

    too_soon = world.begin("remove_thread_soon")
    assert client.wait_for_run(*too_soon, timeout=RUN_SECONDS) == "failed"
    assert "Timed out after 1 s waiting for stream thread west-StreamThread-" in client.log(*too_soon, "change")
    removing = world.begin("remove_thread")
    world.await_log(removing, "to end: it is PENDING_SHUTDOWN")
    assert client.task_states(*removing) == {"change": "running"}
    added_again = world.begin("add_thread")
    world.await_log(added_again, "to start: it is STARTING")
    world.run()
    for run in (removing, added_again):
        assert_success(client, *run, RUN_SECONDS)
    west = [thread for thread in world.threads if thread.startswith(WEST)]
    assert len(west) == 1, "one more, two less, one more"
    both(world.live, world.control, world.known, range(400, 500))
    world.assert_same_results()


# In `make test`, I/test_growing_pipeline.py adds processors by the operation.
@pytest.mark.slow
def test_an_operator_adds_processors(world: World) -> None:
    live, client = world.live, world.airflow.client
    world.run()
    wanted = 2 * live.counts.count
    if len(live.admin.end_offsets([live.topic])[live.topic]) < wanted:
        live.admin.grow_topic(live.topic, wanted)
        world.run()
    expanding = world.begin("expand_processors", to=wanted)
    assert_success(client, *expanding, RUN_SECONDS)
    assert live.counts.expanding_to == wanted
    for _ in range(5):
        if live.counts.count == wanted:
            break
        world.run()
    assert (live.counts.count, live.counts.expanding_to) == (wanted, 0)
    world.assert_same_results()
