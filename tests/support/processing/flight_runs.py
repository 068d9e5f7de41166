"""The flights on a broker, as inputs of programs that exist in Python and in Java, and the results of both."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
from confluent_kafka import KafkaError, Message, Producer
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.pipeline.builder import Pipeline
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.pipeline.task import Headers
from kafka_rescale.core.processing.internal_topics import levels
from kafka_rescale.core.topology.topology import changelog_topic, internal_topic
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.operations.processing.prepare import prepare
from kafka_rescale.spark.processing.run import run_task
from kafka_rescale.spark.processing.task_work import TaskDone
from kafka_rescale.spark.processing.work import works_of

from testbed.flights import HOUR_MS, Dataset, load
from testbed.jars import require_java
from testbed.processes import wait_until
from tests.support.jvm_tests import class_path
from tests.support.processing.flight_programs import INPUTS, OUTPUTS, built

PARTITIONS = {"flights": 1, "departures": 3, "arrivals": 3, "planes": 3}
"""``flights`` has one partition, so that both programs see the input's order after a repartition topic."""

OUTPUT_PARTITIONS = 3
KEEP = {"retention.ms": "-1"}
LATEST_ARRIVAL_HOURS = 5
JAVA_SECONDS = 120


class Logged(NamedTuple):
    """A record as it lies in a topic."""

    partition: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Headers


def recent_flights(number: int) -> Dataset:
    """The first flights of the year, with their times moved so that the last flight has arrived by now.

    :param number: few enough that they take less than a day. Brokers delete what is older than a window's
        retention of a day and more, even from a changelog that is just being written.
    """
    return load(number, load(number).shift_hours - LATEST_ARRIVAL_HOURS)


def create_inputs(connection: KafkaConnection, inputs: str, dataset: Dataset) -> None:
    """Create the inputs and write the data set: planes, flights, and their departures and arrivals by aircraft.

    A flight departs as scheduled, and its arrival has the time two hours and its delay later. The log has arrivals
    in the order of the schedule, so they are late by real delays. No two records of different topics have the same
    time, because nothing would decide which of them comes first.
    """
    for topic, partitions in PARTITIONS.items():
        ClusterAdmin(connection).ensure_topic(f"{inputs}-{topic}", partitions, 1, KEEP)
    producer = Producer(connection.client(**{"partitioner": "murmur2", "linger.ms": 5}, on_delivery=_delivered))
    for number, (at, tail, value) in enumerate(dataset.plane_records):
        _send(producer, f"{inputs}-planes", tail, value, at, number)
    rows = zip(dataset.flight_records, dataset.flights.itertuples(), strict=True)
    for number, ((hour, value), row) in enumerate(rows):
        tail = row.tailnum if isinstance(row.tailnum, str) else None
        _send(producer, f"{inputs}-flights", None, value, hour + 2 * number, number)
        _send(producer, f"{inputs}-departures", tail, value, hour + 2 * number, number)
        if not pd.isna(row.arr_delay):
            arrival = hour + 2 * HOUR_MS + int(row.arr_delay) * 60_000 + 2 * number + 1
            _send(producer, f"{inputs}-arrivals", tail, value, arrival, number)
    assert producer.flush(60) == 0


def _delivered(error: KafkaError | None, _: Message) -> None:
    assert error is None, error


def _send(producer: Producer, topic: str, key: str | None, value: str, at: int, number: int) -> None:
    place = {"partition": 0} if key is None else {}
    producer.produce(topic, value, key, timestamp=at, headers=[("number", str(number).encode())], **place)
    if number % 10_000 == 0:
        producer.flush(60)


@dataclass(frozen=True)
class FlightRun:
    """A program that runs as an application of its own.

    :param inputs: the prefix of the names of the inputs.
    :param application_id: also the prefix of the names of the outputs.
    """

    connection: KafkaConnection
    inputs: str
    application_id: str
    program: str

    @property
    def pipeline(self) -> Pipeline:
        return built(self.program, self.inputs, self.application_id)

    def create_outputs(self) -> None:
        for topic in self.pipeline.topology.outputs:
            ClusterAdmin(self.connection).ensure_topic(topic, OUTPUT_PARTITIONS, 1, KEEP)

    def run(self, state_dir: Path, name: str, patch: pytest.MonkeyPatch, until_ms: int | None) -> list[TaskDone]:
        """Run every task as a run of the DAG does, level by level.

        :param until_ms: end at each input's first record of this time. A task with several inputs passes through
            this point in any case.
        """
        patch.setenv(INPUTS, self.inputs)
        patch.setenv(OUTPUTS, self.application_id)
        application = PipelineApplication.model_validate(
            {
                "application_id": self.application_id,
                "runtime": "spark",
                "pipeline": f"tests.support.processing.flight_programs:{self.program}_pipeline",
                "state.dir": str(state_dir),
            }
        )
        pipeline, admin = pipeline_named(application.pipeline), ClusterAdmin(self.connection)
        processing = prepare(application, self.connection, name).processing
        processors = ControlTopic(self.connection, self.application_id).read().processors
        parts = {part.id: part for part in pipeline.sub_topologies()}
        cuts = {} if until_ms is None else admin.offsets_at(pipeline.topology.inputs, until_ms)
        done = []
        for level in levels(pipeline.topology):
            tasks = processing.tasks_of(processing.running[0], level)
            place, inputs = (self.application_id, tasks, str(state_dir)), processing.input_ends
            for work in works_of(admin, pipeline, *place, processors, inputs=inputs):
                ends = {(t, p): cuts.get(t, {}).get(p, end) for (t, p), end in work.ends.items()}
                part = parts[work.task.subtopology]
                done.append(run_task(self.connection, replace(work, ends=ends), part))
        return done

    def is_through(self) -> bool:
        """Whether the group has committed up to the ends of all topics that it reads."""
        admin, topology = ClusterAdmin(self.connection), self.pipeline.topology
        repartitions = [internal_topic(self.application_id, topic) for topic in topology.repartitions]
        return all(
            admin.describe_topics(topics).keys() == set(topics) and self._has_read(admin, topics)
            for topics in (topology.inputs, repartitions)
        )

    def _has_read(self, admin: ClusterAdmin, topics: Sequence[str]) -> bool:
        ends, committed = admin.end_offsets(topics), admin.committed(self.application_id)
        return all(
            committed.get(topic, {}).get(partition, 0) >= end
            for topic, by_partition in ends.items()
            for partition, end in by_partition.items()
        )

    def left(self) -> dict[str, list[Logged]]:
        """All records of the outputs and changelogs. Their names are without the application id."""
        stores = [
            store.name for part in self.pipeline.sub_topologies() for store in part.stores if store.is_logged
        ]
        topics = [*self.pipeline.topology.outputs, *(changelog_topic(self.application_id, s) for s in stores)]
        ends = ClusterAdmin(self.connection).end_offsets(topics)
        return {
            topic.removeprefix(f"{self.application_id}-"): [
                Logged(m.partition() or 0, m.key(), m.value(), m.timestamp()[1], tuple(m.headers() or ()))
                for m in read_ranges(self.connection, topic, {p: (0, end) for p, end in ends[topic].items()})
            ]
            for topic in topics
        }


@contextmanager
def kafka_streams(runs: Mapping[str, FlightRun], servers: str, directory: Path) -> Iterator[None]:
    """Let Kafka Streams run programs in one JVM. The end of the block waits until each has read everything."""
    any_run = next(iter(runs.values()))
    applications = any_run.application_id.removesuffix(f"-{any_run.program}")
    options = ["-Xmx512m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    arguments = [servers, any_run.inputs, applications, str(directory / "state"), *runs]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [require_java(), *options, "-cp", class_path(), "FlightPipelines", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        yield
        left = dict(runs)

        def through() -> bool:
            assert process.poll() is None, (directory / "log").read_text()[-3000:]
            for name in [name for name, run in left.items() if run.is_through()]:
                del left[name]
            return not left

        wait_until(through, timeout=JAVA_SECONDS, what=f"Kafka Streams to be through with {', '.join(left)}")
        assert process.stdin is not None
        process.stdin.close()
        process.wait(JAVA_SECONDS)
    finally:
        process.kill()
        process.wait()
