"""What a rebalance keeps of a pipeline's clients, and what a handler or a new start changes, on a broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kafka_rescale.cli.pipelines import begin_clients, give_up_clients, pipeline_status
from kafka_rescale.core.assignment.stream_threads import Decision
from kafka_rescale.core.assignment.thread_states import State
from kafka_rescale.core.errors import Refused
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.processing.task_producer import TaskProducer
from kafka_rescale.kafka.reading.committed import copy_consumer
from kafka_rescale.operations.processing.dead_threads import Attempt, handle_failure, take_over
from kafka_rescale.operations.processing.stream_threads import add_stream_thread

from testbed.broker import EmbeddedBroker
from tests.support.processing.several_clients import OUTPUT, SeveralClients

pytestmark = pytest.mark.integration


@pytest.fixture
def app(broker: EmbeddedBroker, unique: str, tmp_path: Path) -> SeveralClients:
    """Two clients with one thread each. The death of a thread ends the application."""
    handler = {"uncaught.exception.handler": Decision.SHUTDOWN_APPLICATION.value}
    connection = KafkaConnection(broker.client_config())
    application = SeveralClients(connection, unique, tmp_path, {"a": {}, "b": {}}, handler)
    application.create_topics()
    return application


@pytest.fixture
def config(app: SeveralClients) -> Path:
    """A file with the broker's properties, for commands."""
    file = app.directory / "config.json"
    file.write_text(json.dumps(dict(app.connection.config)))
    return file


def test_a_rebalance_that_moves_nothing_fences_nobody(app: SeveralClients) -> None:
    app.write(10)
    app.run("run/1")
    places = app.places()
    for thread in app.processing.running:
        app.says_it_runs(thread, "run/1")
    owners = [TaskProducer(app.connection, f"{app.name}-{task}") for task in places]
    for owner in owners:
        with owner.transaction():
            owner.produce(OUTPUT, b"at work", b"at work", 0, timestamp=1)
    assert app.prepare("run/2").revoked == ()
    assert app.places() == places
    consumer = copy_consumer(app.connection, app.name)
    try:
        for owner in owners:
            owner.commit([], consumer)
    finally:
        consumer.close()


def test_a_client_has_its_added_threads_until_it_is_started_again(app: SeveralClients, config: Path) -> None:
    """Only the control topic knows of them. So neither a run nor another Airflow counts as a new start."""

    def threads(run: str) -> list[str]:
        return [name for name in app.prepare(run).processing.running if name.startswith("a-")]

    assert threads("run/1") == ["a-StreamThread-1"]
    assert add_stream_thread(app.name, app.connection, "a") == "a-StreamThread-2"
    for run in ("run/2", "run/3"):
        assert threads(run) == ["a-StreamThread-1", "a-StreamThread-2"]
    give_up_clients(app.file, config, "a", None)
    assert threads("run/4") == []
    assert begin_clients(app.file, config, None).data == {"clients": ["a"]}
    assert threads("run/5") == ["a-StreamThread-1"], "num.stream.threads"


def test_the_handler_can_end_the_application_and_a_person_starts_it_again(
    app: SeveralClients, config: Path
) -> None:
    app.write(5)
    thread = app.prepare("run/1").processing.threads[0].name
    attempt = Attempt("run/1", f"process/1/{thread}", thread, 1)
    found = handle_failure(app.application, app.connection, attempt, "killed")
    assert found is not None
    assert [c.state for c in found.clients] == [State.ERROR, State.PENDING_ERROR], "b has the run to its end"
    with pytest.raises(Refused, match="a: ERROR; b: ERROR"):
        app.prepare("run/2")
    assert begin_clients(app.file, config, None).data == {"clients": ["a", "b"]}
    app.run("run/3")
    assert app.counts() == app.expected()


def test_status_has_no_thread_that_is_dead(app: SeveralClients, config: Path) -> None:
    """``localThreadsMetadata()`` has no dead thread either (KIP-663)."""
    app.configs = {"uncaught.exception.handler": Decision.REPLACE_THREAD.value}
    dead = app.prepare("run/1").processing.threads[0].name
    app.says_it_runs(dead, "run/1")
    assert take_over(app.application, app.connection, Attempt("run/1", f"process/1/{dead}", dead, 2)) is not None
    said = pipeline_status(app.file, config, None)
    assert [row[:3] for row in said.tables[0].rows] == [("a", "RUNNING", 1), ("b", "RUNNING", 0)]
    assert [row[:2] for row in said.tables[1].rows] == [
        ("a-StreamThread-2", "RUNNING"),
        ("b-StreamThread-1", "RUNNING"),
    ]
