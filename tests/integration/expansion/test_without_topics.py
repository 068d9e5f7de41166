"""An application that only filters and maps has no internal topic: nothing is copied, and all other steps work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from kafka_rescale.cli.main import main
from kafka_rescale.core.application.streams import Application, Mode
from kafka_rescale.core.control.journal import Captured, Phase
from kafka_rescale.core.errors import Fenced
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.lifecycle.instance import Instance
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.cutover.cutover import run_cutover
from kafka_rescale.operations.expansion.begin import begin as begin_expansion
from kafka_rescale.operations.expansion.finish import finish
from kafka_rescale.operations.expansion.stages import expand_stage
from kafka_rescale.operations.preflight.preflight import preflight
from kafka_rescale.operations.verify.verify import verify
from kafka_rescale.spark.copy import catch_up
from kafka_rescale.spark.copy.move import move
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job

from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.integration.copy_helpers import read
from tests.integration.spark_job_helpers import RUN, advance, begin, wait_for
from tests.support.filtering import VARIABLE, Filtering
from tests.support.plans import stateless_plan
from tests.support.processing.inline_jobs import session

pytestmark = pytest.mark.integration
RECORDS = 200


@pytest.mark.parametrize("over", [Phase.QUIESCED, Phase.ROLLING_BACK])
def test_catch_up_waits_for_the_journals_word(
    over: Phase, broker: EmbeddedBroker, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = KafkaConnection(broker.client_config())
    plan = stateless_plan(Mode.BLUE_GREEN).model_copy(update={"application": unique})
    control = begin(connection, plan)
    monkeypatch.setattr(Job, "spark", session)
    monkeypatch.setattr(catch_up, "BEAT_SECONDS", 0.2)
    with ThreadPoolExecutor(1) as beside:
        running = beside.submit(
            catch_up.catch_up, Job("catch_up", Arguments(unique, RUN, 1, parallelism=1), connection)
        )
        before = wait_for(control, "catch_up", "ready").as_of_ms
        wait_until(lambda: control.read().results["catch_up"].as_of_ms > before, timeout=30, what="a heartbeat")
        advance(control, Phase.QUIESCING)
        assert not running.done()
        advance(control, over, captured=Captured() if over is Phase.QUIESCED else None)
        running.result(60)
    done = control.read().results["catch_up"]
    assert (done.state, done.detail) == ("done" if over is Phase.QUIESCED else "stopped", "attempt 1")


def test_catch_up_ends_without_a_word_when_another_run_goes_on_with_the_attempt(
    broker: EmbeddedBroker, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = KafkaConnection(broker.client_config())
    control = begin(connection, stateless_plan(Mode.BLUE_GREEN).model_copy(update={"application": unique}))
    monkeypatch.setattr(Job, "spark", session)
    monkeypatch.setattr(catch_up, "BEAT_SECONDS", 0.2)
    with ThreadPoolExecutor(1) as beside:
        job = Job("catch_up", Arguments(unique, RUN, 1, parallelism=1), connection)
        running = beside.submit(catch_up.catch_up, job)
        wait_for(control, "catch_up", "ready")
        taken = control.read().lease
        assert taken is not None
        control.update(lambda _: {"lease": taken.model_copy(update={"owner": "shell/test/2", "epoch": 2})})
        try:
            with pytest.raises(Fenced, match="the lease held by shell/test/2"):
                running.result(60)
        finally:
            # Here its tasks are threads, which do not end with the driver.
            advance(control, Phase.ROLLED_BACK)
    assert control.read().results["catch_up"].state == "ready"


@pytest.fixture
def filtering(broker: EmbeddedBroker, unique: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Application]:
    """A running application that filters. Its input and output have four partitions."""
    names = {"input": f"{unique}-in", "output": f"{unique}-out"}
    for topic in names.values():
        ClusterAdmin(KafkaConnection(broker.client_config())).ensure_topic(topic, 4, 1, {})
    monkeypatch.setenv(VARIABLE, json.dumps({"client": broker.client_config(), **names}))
    monkeypatch.setattr(Job, "spark", session)
    yield Application.model_validate(
        {
            "application_id": unique,
            "partitions": 8,
            "inputs": [{"topic": names["input"], "policy": "unkeyed"}],
            "outputs": [{"topic": names["output"]}],
            "subtopologies": [{"sources": [names["input"]], "sinks": [names["output"]]}],
            "lifecycle": {"type": "python", "callable": "tests.support.filtering:Filtering"},
        }
    )
    for stop, thread in Filtering.running.values():
        stop.set()
        thread.join()
    Filtering.running.clear()


@pytest.mark.parametrize("mode", Mode)
def test_it_is_expanded_and_hands_on_every_record_once(
    mode: Mode,
    broker: EmbeddedBroker,
    filtering: Application,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    application, connection = filtering.model_copy(update={"mode": mode}), KafkaConnection(broker.client_config())
    name, output = application.application_id, application.outputs[0].topic
    send(connection, application, 0)
    Filtering().start(Instance(name, 1, 4, {}))
    wait_until(lambda: arrived(connection, output) == RECORDS, timeout=60, what="the first records")

    named: Any = {"owner": RUN, "now_ms": now_ms(), "owner_is_finished": lambda _: True}
    plan = preflight(application, topology_of(application), connection, target=8, **named).plan
    assert plan is not None
    begin_expansion(application, connection, plan, **named, triggered_by="ada (expand/run-1)")
    for stage in plan.stages:
        expand_stage(application, connection, owner=RUN, stage=stage.index)
    beside = "move" if mode is Mode.IN_PLACE else "catch_up"
    with ThreadPoolExecutor(1) as pool:
        body = move if mode is Mode.IN_PLACE else catch_up.catch_up
        job = pool.submit(body, Job(beside, Arguments(name, RUN, 1, parallelism=1), connection))
        send(connection, application, RECORDS)
        run_cutover(application, connection, owner=RUN)
        job.result(60)
    spark: Any = None
    assert verify(lambda: spark, connection, name).passed
    finish(application, connection, owner=RUN)

    send(connection, application, 2 * RECORDS)
    wait_until(lambda: arrived(connection, output) >= 3 * RECORDS, timeout=60, what="the last records")
    journal = ControlTopic(connection, name).read().journal
    assert journal is not None
    assert journal.phase is Phase.COMPLETE
    assert sorted(int(r.value or b"") for of in read(connection, output).values() for r in of) == [
        *range(3 * RECORDS)
    ]
    assert len(read(connection, application.inputs[0].topic)) == 8
    (past,) = history_by_command(application, broker, tmp_path, capsys)
    assert (past["outcome"], past["before"], past["after"]) == ("complete", 4, 8)
    assert (past["triggered_by"], past["approved_by"], past["run"]) == ("ada (expand/run-1)", "", RUN)
    assert (past["timings"], past["proven"]["verified"]) == (journal.timings, True)
    assert past["begun_ms"] < past["ended_ms"]


def history_by_command(
    application: Application, broker: EmbeddedBroker, directory: Path, capsys: pytest.CaptureFixture[str]
) -> list[dict[str, Any]]:
    """Return what ``history`` prints as JSON, and assert that its table names the same run."""
    file, config = directory / "filtering.yaml", directory / "client.json"
    file.write_text(yaml.safe_dump(application.model_dump(mode="json", exclude_unset=True)))
    config.write_text(json.dumps(broker.client_config()))
    capsys.readouterr()
    assert main(["history", str(file), "--config", str(config)]) == 0
    shown = capsys.readouterr().out
    assert "complete" in shown
    assert RUN in shown
    assert main(["history", str(file), "--config", str(config), "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["expansions"]
    return found


def send(connection: KafkaConnection, application: Application, first: int) -> None:
    """Write so many records. Each has a number of its own."""
    producer = Producer(connection.client())
    for number in range(first, first + RECORDS):
        producer.produce(application.inputs[0].topic, b"%d" % number)
    assert producer.flush(30) == 0


def arrived(connection: KafkaConnection, topic: str) -> int:
    """Return how many records have arrived."""
    return sum(ClusterAdmin(connection).end_offsets([topic])[topic].values())
