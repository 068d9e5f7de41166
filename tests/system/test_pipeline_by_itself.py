"""A pipeline in a real Airflow changes by itself: a task moves to a warm client, and processors are added."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.airflow_standalone import AirflowStandalone
from testbed.broker import EmbeddedBroker
from tests.support.airflow.airflow_runs import assert_success
from tests.support.airflow.otlp_server import OtlpServer
from tests.support.processing.growing import Growing
from tests.support.processing.growing_control import both, live_and_control, moved_between, same_results
from tests.support.processing.growing_load import under_load
from tests.support.processing.growth_notes import NOTES, note
from tests.support.words_pipeline import write_pipeline

pytestmark = [pytest.mark.system, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
RUN_SECONDS = 600
EAST, WEST = "east", "west"
ACCEPTABLE = 500
SCALING = {
    "partition.autoscaling.enabled": True,
    "on_partition_expansion": f"{note.__module__}:{note.__name__}",
}


@dataclass
class World:
    """A pipeline on one client, a control that never grows, and an Airflow that runs the pipeline.

    :param control: gets the same input. The test itself runs it.
    :param notes: file of the callback's calls.
    """

    live: Growing
    control: Growing
    airflow: AirflowStandalone
    measured: OtlpServer
    applications: Path
    notes: Path

    @property
    def process(self) -> str:
        """The DAG that processes."""
        return f"process_{self.live.application.application_id}"

    @property
    def keep_warm(self) -> str:
        """The DAG that keeps replicas warm and makes probing rebalances."""
        return f"keep_warm_{self.live.application.application_id}"

    @property
    def processing(self) -> Processing:
        """The assignment of the last run."""
        found = self.live.control.read().processing
        assert found is not None
        return found

    def run(self) -> None:
        """Trigger one whole run as a person would."""
        client = self.airflow.client
        assert_success(client, self.process, client.trigger(self.process), RUN_SECONDS)

    def await_value(self, wanted: float, name: str, **tags: str) -> None:
        """Wait until a gauge with exactly these tags has a value. Their names have underscores for dashes."""
        key = (f"airflow.{name}", frozenset((tag.replace("_", "-"), value) for tag, value in tags.items()))
        self.airflow.client.wait(
            lambda: self.measured.gauges.get(key) == wanted,
            f"{key} to be {wanted:g} among {self.measured.gauges}",
            RUN_SECONDS,
        )

    def await_parallelism(self, current: int, expected: int) -> None:
        """Wait until both metrics of the only sub-topology have arrived."""
        name = self.live.application.application_id
        for which, wanted in (("current", current), ("expected", expected)):
            metric = f"stream-subtopology-metrics.{name}.0.{which}-subtopology-parallelism"
            self.await_value(wanted, metric, application_id=name, subtopology_id="0")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("itself")
    applications, notes = directory / "applications", directory / "notes"
    with EmbeddedBroker(directory / "broker", heap="512m") as broker, OtlpServer() as measured:
        connection = KafkaConnection(broker.client_config())
        live, control = live_and_control(
            connection, "moves", directory, clients=(EAST,), acceptable_lag=ACCEPTABLE, settle_ms=5_000
        )
        live.scaling = dict(SCALING)
        declare(applications, live)
        connections = {
            "kafka_default": {"conn_type": "kafka", "extra": dict(connection.config)},
            "spark_default": {"conn_type": "spark", "host": "local[1]"},
        }
        # The pipeline is in the tests' package.
        env = {
            "KAFKA_RESCALE_APPLICATIONS": str(applications),
            "PYTHONPATH": f"{ROOT / 'plugins'}:{ROOT}",
            NOTES: str(notes),
            **measured.settings(),
        }
        with AirflowStandalone(directory / "airflow", connections=connections, env=env) as airflow:
            yield World(live, control, airflow, measured, applications, notes)


def declare(applications: Path, live: Growing) -> None:
    """Write the application file. The pipeline has no schedule, but replicas are read every minute."""
    on_schedule = {"keep_warm_schedule": "* * * * *", "probing.rebalance.interval.ms": 60_000}
    write_pipeline(applications, **{"state.dir": None}, **live.declared, **on_schedule)


def test_a_probing_rebalance_moves_a_task_to_the_client_that_has_warmed_up(world: World) -> None:
    """KIP-441: a client joins, restores in the background, and gets the task in a run that no person triggers."""
    live, client = world.live, world.airflow.client
    both(live, world.control, 2, range(10 * ACCEPTABLE))
    world.run()
    assert set(live.owners().values()) == {EAST}

    live.clients = (EAST, WEST)
    declare(world.applications, live)
    client.parse_again(world.process)
    both(live, world.control, 2, range(10 * ACCEPTABLE, 10 * ACCEPTABLE + 200))
    world.run()
    (movement,) = world.processing.movements
    assert (movement.runs_on, movement.goes_to, movement.is_warming_up) == (EAST, WEST, True)
    assert set(live.owners().values()) == {EAST}, "its owner goes on with it meanwhile"

    both(live, world.control, 2, range(10 * ACCEPTABLE + 200, 11 * ACCEPTABLE))
    begun_by_hand = client.runs(world.process).keys()
    client.pause(world.keep_warm, False)
    client.wait(lambda: client.runs(world.process).keys() - begun_by_hand, "a probing rebalance", RUN_SECONDS)
    (probing,) = client.runs(world.process).keys() - begun_by_hand
    assert probing.startswith("probing__")
    assert_success(client, world.process, probing, RUN_SECONDS)
    client.pause(world.keep_warm)

    assert live.owners()[movement.task] == WEST
    assert set(live.owners().values()) == {EAST, WEST}
    assert world.processing.movements == ()
    state = live.control.read()
    said = {name: result.detail for name, result in state.results.items() if result.run == world.processing.run}
    moved = [detail for name, detail in said.items() if f"/{WEST}-StreamThread-" in name]
    assert moved, said
    assert all(" 0 restored" in detail for detail in moved), said
    world.control.run()
    same_results(live, world.control, processors=2)


def test_processors_follow_a_grown_input_with_its_metrics_and_callback(world: World) -> None:
    """KIP-878: every run looks at the counts, and no person asks for processors."""
    live = world.live
    if not live.control.read().processing:
        both(live, world.control, 2, range(200))
        world.run()
    world.await_parallelism(2, 2)
    with under_load(live.connection, (live.topic, world.control.topic), per_second=50) as sent:
        live.admin.grow_topic(live.topic, 4)
        world.run()
        assert live.counts.expanding_to == 4
        world.await_parallelism(2, 4)
        assert not world.notes.exists()
        for _ in range(6):
            if live.counts.count == 4:
                break
            world.run()
        assert (live.counts.count, live.counts.expanding_to) == (4, 0)
    world.run()
    world.await_parallelism(4, 4)
    name = live.application.application_id
    world.await_value(0, f"stream-client-metrics.{name}.num-autoscaling-failures", client_id=name)
    assert world.notes.read_text() == "2 -> 4\n"
    world.control.run()
    same_results(live, world.control, processors=4)
    assert sum(sent) > 100
    assert moved_between(live, {0, 1}) == set()
