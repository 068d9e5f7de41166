"""With exactly the printed ACLs, everything that the roles of a pipeline do works. With fewer, it does not.

The tests use a real broker with the KRaft authorizer. Jobs run in this process without Spark, with the same Kafka
clients.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kafka_rescale.core.acls.acls import Acl, Operation, Pattern, Resource
from kafka_rescale.core.acls.pipeline import pipeline_acls
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.errors import RescaleError
from kafka_rescale.core.processing.adjustments import NOTHING_ASKED, Adjustments
from kafka_rescale.core.processing.backfill import Backfill, backfill_of
from kafka_rescale.core.processing.request import KeepWarmRequest, WarmUpRequest
from kafka_rescale.core.roles import Role
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.application.load import load_pipeline_application
from kafka_rescale.operations.processing.dead_threads import Attempt, handle_failure, take_over
from kafka_rescale.operations.processing.keep_warm import due_clients, probe
from kafka_rescale.operations.processing.prepare import is_idle, prepare
from kafka_rescale.operations.processing.processors import expand_processors
from kafka_rescale.spark.processing.keep_warm import keep_warm
from kafka_rescale.spark.processing.warm_up_processors import warm_up_processors

from testbed.broker import EmbeddedBroker
from testbed.broker_security import BrokerSecurity
from tests.support.processing.inline_jobs import requests, run_job
from tests.support.secured import CANARY, Secured
from tests.support.small_cluster import create
from tests.support.words_pipeline import words, write_pipeline

pytestmark = pytest.mark.integration

START_MS = 1_700_006_400_000
INTERVAL = ("2023-11-15T00:00:00Z", "2023-11-16T00:00:00Z")
CLIENTS = ("a", "b")


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Secured]:
    """The words pipeline on a broker with an authorizer, with exactly the printed ACLs. Nothing has run yet."""
    clients = [{"client.id": name, "state.dir": str(tmp_path / name)} for name in CLIENTS]
    fields: dict[str, Any] = {
        "clients": clients,
        "state.dir": None,
        "num.stream.threads": 1,
        "num.standby.replicas": 1,
        "acceptable.recovery.lag": 0,
        "partition.growth.settle.ms": 0,
        "backfill": {"outputs": {"counted": "counted-then"}},
    }
    file = write_pipeline(tmp_path, **fields)
    users = {role.value: f"{role}-{CANARY}" for role in Role}
    security = BrokerSecurity(tmp_path / "certificates", users)
    with EmbeddedBroker(tmp_path / "broker", heap="384m", security=security) as broker:
        kept = {"retention.ms": "-1"}
        topics = [NewTopic(name, 2, config=kept) for name in ("lines", "counted", "counted-then")]
        create(broker.internal_config, topics)
        given = Secured(broker, file)
        given.grant(pipeline_acls(declared(given), words().topology))
        produce(given, range(40))
        yield given


def declared(pipeline: Secured) -> PipelineApplication:
    return load_pipeline_application(pipeline.file)


def produce(pipeline: Secured, numbers: range) -> None:
    producer = Producer(pipeline.broker.internal_config)
    for n in numbers:
        producer.produce("lines", b"word-%d" % (n % 16), None, n % 2, timestamp=START_MS + n)
    assert producer.flush(30) == 0


def run(
    pipeline: Secured,
    application: PipelineApplication,
    name: str,
    asked: Adjustments = NOTHING_ASKED,
    backfill: Backfill | None = None,
) -> str:
    """Make a run as the DAG does, and return what `assign` said.

    The role admin does `assign`, and the role copy does the rest.
    """
    copy, run_id = pipeline.connections[Role.COPY], f"process_words/{name}"
    prepared = prepare(application, pipeline.connections[Role.ADMIN], run_id, asked, backfill)
    for level in (1, 2):
        for each in requests(application, prepared.processing.running, level):
            request = each.model_copy(update={"backfill": backfill})
            take_over(application, copy, Attempt(run_id, request.key, request.thread, 1))
            if not is_idle(application, copy, run_id, request):
                assert run_job(copy, application.application_id, run_id, 1, request) == 0
    for client in CLIENTS if backfill is None else ():
        wanted = WarmUpRequest.of(application, client)
        assert run_job(copy, application.application_id, run_id, 1, wanted, warm_up_processors) == 0
    return str(prepared)


def test_what_a_pipeline_does_works_with_exactly_what_is_printed(pipeline: Secured) -> None:
    application, copy = declared(pipeline), pipeline.connections[Role.COPY]
    assert "created words-by-word-repartition, words-counts-changelog" in run(pipeline, application, "first")
    state = ControlTopic(pipeline.connections[Role.PLAN], "words").read()
    assert {r.state for r in state.results.values()} == {"done"}

    # Standbys, as `keep_warm_words` runs them.
    assert sorted(due_clients(application, pipeline.connections[Role.ADMIN])) == list(CLIENTS)
    for client in CLIENTS:
        assert (
            run_job(copy, "words", "keep_warm_words/1", 1, KeepWarmRequest.of(application, client), keep_warm) == 0
        )
    probe(application, pipeline.connections[Role.ADMIN])

    # A thread dies, and another thread is added.
    first = f"process/1/{state.processing.running[0]}" if state.processing else ""
    attempt = Attempt("process_words/first", first, first.rsplit("/", maxsplit=1)[-1], 1)
    assert handle_failure(application, copy, attempt, Exception("a test")) is not None
    produce(pipeline, range(40, 80))
    run(pipeline, application, "second", Adjustments(add_to="a"))


def test_processors_are_added_and_the_past_is_processed_again(pipeline: Secured) -> None:
    application = declared(pipeline)
    run(pipeline, application, "first")
    produce(pipeline, range(40, 80))
    expand_processors(application, pipeline.connections[Role.ADMIN], 4, [1])
    assert "goes from 2 to 4 processors: " in run(pipeline, application, "warms-up")
    assert "goes from 2 to 4 processors in this run: " in run(pipeline, application, "hands-over")
    backfill = backfill_of(application, words().topology, *INTERVAL)
    generation = backfill.generation("words")
    again = application.model_copy(update={"application_id": generation})
    assert f"created {generation}-by-word-repartition" in run(pipeline, again, "then", backfill=backfill)


LACKING = [
    Acl(Role.ADMIN, Pattern(Resource.TOPIC, "words-", prefixed=True), Operation.CREATE),
    Acl(Role.COPY, Pattern(Resource.TOPIC, "words-", prefixed=True), Operation.DELETE),
    Acl(Role.COPY, Pattern(Resource.TOPIC, "counted"), Operation.WRITE),
    Acl(Role.COPY, Pattern(Resource.TRANSACTIONAL_ID, "words-", prefixed=True), Operation.WRITE),
]


@pytest.mark.slow
@pytest.mark.parametrize("acl", LACKING, ids=lambda acl: f"{acl.role}-{acl.operation}-{acl.pattern.name}")
def test_without_one_of_them_it_does_not(pipeline: Secured, acl: Acl) -> None:
    pipeline.revoke(acl)
    time.sleep(1)  # A broker applies the change a moment after it has been answered.
    with pytest.raises((RescaleError, AssertionError)):
        run(pipeline, declared(pipeline), "first")
