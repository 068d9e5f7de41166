"""A stuck job of a thread does not hold up the others. It is ended after `max.poll.interval.ms`."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from confluent_kafka import Producer
from kafka_rescale.airflow.operators.process import ProcessOperator
from kafka_rescale.cli.pipelines import pipeline_status
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.assignment.thread_states import State
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.errors import TimedOut
from kafka_rescale.core.pipeline import LONG
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.operations.application.load import load_pipeline_application
from kafka_rescale.operations.processing.prepare import prepare

from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.integration.spark_job_helpers import LOCAL
from tests.support.processing.stuck_pipeline import INPUT, OUTPUT, SECONDS, STUCK, TRAP
from tests.support.processing.thread_operators import RUN, attempt, connections, thread_operator
from tests.support.words_pipeline import write_pipeline

# In `make test`, U/test_thread_watch.py, with the clock and the control topic of a test.
pytestmark = [pytest.mark.integration, pytest.mark.slow]
LIMIT_SECONDS = 60
"""The shortest limit that a file may declare."""
NOTICED_SECONDS = 30.0
"""The additional time until the error: the pause between two looks, and the end of the processes."""


@dataclass
class Stuck:
    """A pipeline with two threads, each with one partition of the input."""

    application: PipelineApplication
    connection: KafkaConnection
    directory: Path

    @property
    def trap(self) -> Path:
        return self.directory / "trap"

    @property
    def processing(self) -> Processing:
        found = ControlTopic(self.connection, self.application.application_id).read().processing
        assert found is not None
        return found

    def result(self, index: int) -> JobResult | None:
        state = ControlTopic(self.connection, self.application.application_id).read()
        return state.results.get(f"process/1/{self.thread(index)}")

    def thread(self, index: int) -> str:
        return f"{self.application.application_id}-StreamThread-{index}"

    def write(self, values: dict[int, list[str]]) -> None:
        """Write records, and begin the run that reads them."""
        producer = Producer(self.connection.client())
        for partition, its in values.items():
            for number, value in enumerate(its):
                key = f"{partition}-{number % 7}".encode()
                producer.produce(INPUT, value.encode(), key, partition, timestamp=1_700_000_000_000 + number)
        assert producer.flush(30) == 0
        prepare(self.application, self.connection, RUN)

    def counts(self) -> Counter[str]:
        """The last count of each key that was committed."""
        ends = ClusterAdmin(self.connection).end_offsets([OUTPUT])[OUTPUT]
        ranges = {partition: (0, end) for partition, end in ends.items()}
        found = read_ranges(self.connection, OUTPUT, ranges)
        return Counter({(m.key() or b"").decode(): LONG.decode(m.value()) for m in found})

    def jobs(self) -> list[list[object]]:
        """The jobs of the run, as `status` shows them."""
        config = self.directory / "config.json"
        config.write_text(json.dumps(dict(self.connection.config)))
        file = self.directory / f"{self.application.application_id}.yaml"
        (table,) = (t for t in pipeline_status(file, config, None).tables if t.title == "Jobs of the run")
        return list(map(list, table.rows))

    def operator(self, index: int) -> ProcessOperator:
        return thread_operator(self.application, self.thread(index))


@pytest.fixture
def stuck(broker: EmbeddedBroker, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stuck:
    connection = KafkaConnection(broker.client_config())
    connections(monkeypatch, connection, spark_x=LOCAL)
    monkeypatch.setenv(TRAP, str(tmp_path / "trap"))
    admin = ClusterAdmin(connection)
    admin.delete_topics([INPUT, OUTPUT])
    for topic in (INPUT, OUTPUT):
        admin.ensure_topic(topic, 2, 1, {"retention.ms": "-1"})
    named = {"application_id": unique, "pipeline": "tests.support.processing.stuck_pipeline:counting"}
    limit = {"max.poll.interval.ms": LIMIT_SECONDS * 1000}
    application = load_pipeline_application(write_pipeline(tmp_path, **named, **limit))
    return Stuck(application, connection, tmp_path)


def processes_of(operator: ProcessOperator) -> list[psutil.Process]:
    submitted = psutil.Process(operator._hook._submit_sp.pid)
    return [submitted, *submitted.children(recursive=True)]


def test_a_function_that_never_returns_is_ended_and_the_handler_decides(stuck: Stuck) -> None:
    stuck.write({0: ["a"] * 50 + [STUCK] + ["b"] * 50, 1: ["c"] * 100})
    stuck.trap.touch()
    first, began = stuck.operator(1), time.monotonic()
    with pytest.raises(TimedOut, match=rf"waiting for stream thread {stuck.thread(1)} to make progress"):
        first.execute(attempt(1))
    assert time.monotonic() - began < 2 * LIMIT_SECONDS + NOTICED_SECONDS
    assert first._hook._submit_sp.poll() is not None

    (client,) = stuck.processing.clients
    assert (client.state, client.failed_stream_threads) == (State.RUNNING, 1)
    assert [thread.replaces for thread in client.threads] == ["", stuck.thread(1)]
    result = stuck.result(1)
    assert result is not None
    assert (result.state, "to make progress" in result.detail) == ("failed", True)
    [[job, *said]] = stuck.jobs()
    assert (job, said[:3], "to make progress" in str(said[3])) == (result.job, [1, "failed", ""], True)
    assert stuck.operator(2).execute(attempt(1))["state"] == "done", "the other thread goes on"

    stuck.trap.unlink()
    assert stuck.operator(1).execute(attempt(2))["state"] == "done"
    assert stuck.counts() == Counter(f"{p}-{n % 7}" for p, size in ((0, 101), (1, 100)) for n in range(size))


def test_a_driver_that_stands_still_is_ended_with_all_its_processes(
    stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECONDS, "0.05")
    stuck.write({0: ["a"] * 1_000})
    first, frozen = stuck.operator(1), list[psutil.Process]()

    def freeze() -> None:
        def is_at_work() -> bool:
            result = stuck.result(1)
            return result is not None and result.progressed_ms > 0

        wait_until(is_at_work, timeout=240, what="the first sign of progress")
        frozen.extend(processes_of(first))
        for process in frozen:
            os.kill(process.pid, signal.SIGSTOP)

    beside = threading.Thread(target=freeze)
    beside.start()
    with pytest.raises(TimedOut, match="to make progress"):
        first.execute(attempt(1))
    beside.join()
    assert len(frozen) >= 3, "JVM, driver and worker"
    assert psutil.wait_procs(frozen, timeout=10)[1] == []
    monkeypatch.setenv(SECONDS, "0")
    assert stuck.operator(1).execute(attempt(2))["state"] == "done"
    assert stuck.counts() == Counter(f"0-{n % 7}" for n in range(1_000))


def test_a_job_that_takes_longer_than_the_limit_is_left_alone_as_long_as_it_makes_progress(
    stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECONDS, "0.1")
    stuck.write({0: ["a"] * 800})
    assert stuck.operator(1).execute(attempt(1))["seconds"] > LIMIT_SECONDS * 1.2
    assert stuck.counts() == Counter(f"0-{n % 7}" for n in range(800))
