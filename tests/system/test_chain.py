"""A chain of three live applications is expanded downstream first. A failure in the middle leaves the rest alone.

Slow: three expansions in a real Airflow.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.control.control_topic import ControlTopic

from testbed.airflow_standalone import AirflowStandalone
from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.support.links import KEYS, NAMES, Links

pytestmark = [pytest.mark.system, pytest.mark.slow]
CHAIN = "expand_chain_links"
RUN_SECONDS = 1500
World = tuple[Links, AirflowStandalone]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("links")
    with EmbeddedBroker(directory / "broker") as broker:
        links = Links(directory, broker.bootstrap_servers)
        links.prepare()
        sending = threading.Thread(target=links.produce)
        airflow = AirflowStandalone(
            directory / "airflow",
            connections={
                "kafka_default": {"conn_type": "kafka", "extra": dict(links.connection.config)},
                "spark_default": {"conn_type": "spark", "host": "local[2]"},
            },
            env=links.environment,
        )
        try:
            sending.start()
            for name in NAMES:
                assert links.run("start", name) == 0
            wait_until(lambda: len(links.finals()) == KEYS, timeout=180, what="every key at the end of the chain")
            with airflow:
                for name in NAMES:
                    airflow.client.pause(f"expand_{name}", False)
                yield links, airflow
        finally:
            links.end()
            sending.join()
            for name in NAMES:
                for application_id in (name, f"{name}-g2"):
                    links.run("stop", application_id)


def running(links: Links) -> dict[str, str]:
    """Return the running generation of each application."""
    generations = {name: [name, f"{name}-g2"] for name in NAMES}
    alive = {name: [g for g in names if links.run("status", g) == 0] for name, names in generations.items()}
    assert all(len(found) == 1 for found in alive.values()), alive
    return {name: found[0] for name, found in alive.items()}


def test_a_chain_with_a_paused_dag_is_refused_before_anything_is_touched(world: World) -> None:
    _, airflow = world
    airflow.client.pause("expand_middle")
    run_id = airflow.client.trigger(CHAIN, {"approve_cutover": False})
    assert airflow.client.wait_for_run(CHAIN, run_id, timeout=RUN_SECONDS) == "failed"
    assert airflow.client.task_states(CHAIN, run_id)["preflight.unpaused_dags"] == "failed"
    assert "expand_middle, paused" in airflow.client.log(CHAIN, run_id, "preflight.unpaused_dags")
    assert airflow.client.runs("expand_down") == {}
    airflow.client.pause("expand_middle", False)


def test_a_failure_in_the_middle_leaves_the_rest_untouched_and_running(world: World) -> None:
    links, airflow = world
    # `up` is the producer of `middle`, so it has to be held at the cutover of `middle`.
    unstoppable = links.directory / "up.unstoppable"
    unstoppable.touch()
    run_id = airflow.client.trigger(CHAIN, {"approve_cutover": False})
    assert airflow.client.wait_for_run(CHAIN, run_id, timeout=RUN_SECONDS) == "failed"
    unstoppable.unlink()
    states = airflow.client.task_states(CHAIN, run_id)
    assert {name: states[name] for name in NAMES} == {
        "down": "success",
        "middle": "failed",
        "up": "upstream_failed",
    }
    assert running(links) == {"up": "up", "middle": "middle", "down": "down-g2"}
    before = links.finals()
    wait_until(lambda: links.finals() != before, timeout=120, what="numbers to go on flowing")


def test_another_trigger_goes_on_with_the_chain(world: World) -> None:
    links, airflow = world
    run_id = airflow.client.trigger(CHAIN, {"approve_cutover": False})
    assert airflow.client.wait_for_run(CHAIN, run_id, timeout=RUN_SECONDS) == "success"
    assert running(links) == {name: f"{name}-g2" for name in NAMES}
    counts = ClusterAdmin(links.connection).describe_topics(["raw", "sums", "peaks"])
    assert {topic: found.partitions for topic, found in counts.items()} == {"raw": 8, "sums": 8, "peaks": 8}
    ended = {name: ControlTopic(links.connection, name).read().journal for name in NAMES}
    assert [j.phase for j in ended.values() if j] == ["complete"] * 3
    assert sorted(NAMES, key=lambda name: ended[name].changed_at_ms if ended[name] else 0) == [*reversed(NAMES)]
    links.end()
    wait_until(lambda: links.finals() == links.sent, timeout=180, what="every number at the end of the chain")
