"""A thread dies of an exception of its pipeline, and the handler decides by this exception (KIP-663's example)."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.assignment.thread_states import State
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.errors import InvalidInput, Outage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.application.load import load_pipeline_application
from kafka_rescale.operations.processing.dead_threads import Attempt, handle_failure
from kafka_rescale.operations.processing.prepare import prepare

from testbed.broker import EmbeddedBroker
from tests.integration.spark_job_helpers import ROOT, RUN, submitted
from tests.support.processing.failing_pipeline import HANDED, INPUT, OUTPUT, ProcessorStateException
from tests.support.processing.inline_jobs import requests, run_job
from tests.support.words_pipeline import write_pipeline

pytestmark = pytest.mark.integration
MODULE = "tests.support.processing.failing_pipeline"


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


def declared(connection: KafkaConnection, name: str, directory: Path, value: bytes) -> PipelineApplication:
    """The application, with one record in its input."""
    admin = ClusterAdmin(connection)
    admin.delete_topics([INPUT, OUTPUT])
    for topic in (INPUT, OUTPUT):
        admin.ensure_topic(topic, 1, 1, {})
    producer = Producer(connection.client())
    producer.produce(INPUT, value, b"k")
    assert producer.flush(30) == 0
    changes = {"num.stream.threads": 1, "uncaught.exception.handler": f"{MODULE}:handler"}
    file = write_pipeline(directory, application_id=name, pipeline=f"{MODULE}:failing", **changes)
    HANDED.clear()
    return load_pipeline_application(file)


def after_its_death(application: PipelineApplication, connection: KafkaConnection) -> Processing:
    """Let Airflow's task handle the death of the thread, and return the state of the clients."""
    thread = f"{application.application_id}-StreamThread-1"
    attempt = Attempt(RUN, f"process/1/{thread}", thread, 1)
    found = handle_failure(application, connection, attempt, Exception("spark-submit has ended with exit code 1"))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("value", "state", "threads"), [(b"state", State.RUNNING, ["2"]), (b"no number", State.ERROR, [])]
)
def test_the_handler_decides_by_the_exception_of_the_pipeline(
    connection: KafkaConnection, unique: str, tmp_path: Path, value: bytes, state: State, threads: list[str]
) -> None:
    application = declared(connection, unique, tmp_path, value)
    (request,) = requests(application, prepare(application, connection, RUN).processing.running, 1)
    assert run_job(connection, unique, RUN, 1, request) == 1
    (client,) = after_its_death(application, connection).clients
    assert (client.state, [thread.name[-1] for thread in client.threads]) == (state, threads)
    (handed,) = HANDED
    assert isinstance(handed.__cause__, ProcessorStateException if value == b"state" else ValueError)


def test_a_thread_whose_job_has_said_nothing_died_of_an_outage(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    application = declared(connection, unique, tmp_path, b"1")
    prepare(application, connection, RUN)
    assert after_its_death(application, connection).running == (f"{unique}-StreamThread-2",)
    (handed,) = HANDED
    assert (type(handed), str(handed).partition(";")[0]) == (
        Outage,
        f"stream thread {unique}-StreamThread-1: found spark-submit has ended with exit code 1",
    )


def test_what_a_thread_died_of_crosses_spark(connection: KafkaConnection, unique: str, tmp_path: Path) -> None:
    application = declared(connection, unique, tmp_path, b"state")
    (request,) = requests(application, prepare(application, connection, RUN).processing.running, 1)
    arguments = ["--request", request.model_dump_json()]
    with submitted(connection, tmp_path, "process", unique, *arguments, path=str(ROOT)) as job:
        assert job.result() == 1, job.text()
    assert after_its_death(application, connection).running == (f"{unique}-StreamThread-2",)
    (handed,) = HANDED
    assert f"{INPUT}-0 at offset 0" in str(handed)
    assert (type(handed.__cause__), str(handed.__cause__)) == (ProcessorStateException, "counts: it can't be read")


def test_a_handler_that_is_not_there_is_refused_before_a_run_begins(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    application = declared(connection, unique, tmp_path, b"1")
    wrong = application.model_copy(update={"uncaught_exception_handler": f"{MODULE}:missing"})
    with pytest.raises(InvalidInput, match=f"{MODULE}:missing"):
        prepare(wrong, connection, RUN)
    assert ControlTopic(connection, unique).read().processing is None
