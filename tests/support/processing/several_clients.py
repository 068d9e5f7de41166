"""A pipeline with several clients on a broker: its runs, its standbys, and its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.pipeline import LONG, STRING, Pipeline, StreamsBuilder
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.internal_topics import levels
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.processing.changelogs import KnownState, known_state
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.operations.application.load import load_pipeline_application
from kafka_rescale.operations.processing.keep_warm import due_clients
from kafka_rescale.operations.processing.prepare import Prepared, prepare
from kafka_rescale.spark.processing.run import run_task
from kafka_rescale.spark.processing.standby_task import Warmed, run_standby, works_due
from kafka_rescale.spark.processing.task_work import TaskDone
from kafka_rescale.spark.processing.work import works_of

from tests.support.processing.saved_state import saved_rows
from tests.support.words_pipeline import write_pipeline

INPUT, OUTPUT = "several-clients-in", "several-clients-out"
PARTITIONS = 4
# Transaction markers have today's time. Behind much older records they would roll segments, which are compacted.
T0 = now_ms() - 3_600_000


def counting() -> Pipeline:
    """Count the records per key."""
    builder = StreamsBuilder()
    records = builder.stream(INPUT, key=STRING, value=STRING)
    records.group_by_key().count(store="counts").to_stream().to(OUTPUT)
    return builder.build()


def three_stores() -> Pipeline:
    """Count the records per key, and keep two more aggregates of the same records: three stores of one task."""
    builder = StreamsBuilder()
    grouped = builder.stream(INPUT, key=STRING, value=STRING).group_by_key()
    grouped.count(store="counts").to_stream().to(OUTPUT)
    grouped.reduce(lambda old, new: new, store="latest")
    grouped.count(store="counted-again")
    return builder.build()


@dataclass
class SeveralClients:
    """An application of its own.

    :param clients: tags by client id. `rack.id` is no tag, but a client can declare it here as well.
    """

    connection: KafkaConnection
    name: str
    directory: Path
    clients: Mapping[str, Mapping[str, str]]
    configs: Mapping[str, Any] = field(default_factory=dict)
    written: int = 0

    @property
    def admin(self) -> ClusterAdmin:
        return ClusterAdmin(self.connection)

    @property
    def file(self) -> Path:
        """The application file, written anew as it is declared now."""
        declared: dict[str, Any] = {
            "pipeline": "tests.support.processing.several_clients:counting",
            "num.stream.threads": 1,
            "state.dir": None,
            "clients": [
                {
                    "client.id": client,
                    "state.dir": str(self.state_dir(client)),
                    **{n if n == "rack.id" else f"client.tag.{n}": value for n, value in tags.items()},
                }
                for client, tags in self.clients.items()
            ],
            **self.configs,
        }
        return write_pipeline(self.directory, application_id=self.name, **declared)

    @property
    def application(self) -> PipelineApplication:
        return load_pipeline_application(self.file)

    def state_dir(self, client: str) -> Path:
        return self.directory / client

    def create_topics(self) -> None:
        """Delete input and output, and create them again."""
        self.admin.delete_topics([INPUT, OUTPUT])
        for topic in (INPUT, OUTPUT):
            self.admin.ensure_topic(topic, PARTITIONS, 1, {})

    def write(self, count: int) -> None:
        """Write so many records to every partition of the input. Each partition has ten keys."""
        producer = Producer(self.connection.client(**{"linger.ms": 5}))
        for number in range(self.written, self.written + count):
            for partition in range(PARTITIONS):
                key = b"%d-%d" % (partition, number % 10)
                producer.produce(INPUT, b"v", key, partition, timestamp=T0 + number)
        assert producer.flush(30) == 0
        self.written += count

    def prepare(self, run: str) -> Prepared:
        return prepare(self.application, self.connection, run)

    def run(self, run: str) -> dict[str, TaskDone]:
        """Make one whole run, and return what each task has done in it."""
        return self.process(self.prepare(run).processing)

    def process(self, processing: Processing, threads: Sequence[str] | None = None) -> dict[str, TaskDone]:
        """Do the rest of a run with the given threads, or with all threads."""
        application, pipeline = self.application, pipeline_named(self.application.pipeline)
        parts = {part.id: part for part in pipeline.sub_topologies()}
        done: dict[str, TaskDone] = {}
        processors = self.control.read().processors
        for level in levels(pipeline.topology):
            for thread in threads if threads is not None else processing.running:
                tasks = processing.tasks_of(thread, level)
                place, ends = application.member_of(thread).state_dir, processing.input_ends
                for work in works_of(self.admin, pipeline, self.name, tasks, place, processors, inputs=ends):
                    done[str(work.task)] = run_task(self.connection, work, parts[work.task.subtopology])
        return done

    def keep_warm(self) -> dict[str, list[Warmed]]:
        """Let the standbys of every client look at their changelogs once."""
        application, pipeline = self.application, pipeline_named(self.application.pipeline)
        parts = {part.id: part for part in pipeline.sub_topologies()}
        processing, now, known = self.processing, now_ms(), self.known
        found: dict[str, list[Warmed]] = {}
        for name in due_clients(application, self.connection):
            record = processing.client(name)
            assert record is not None
            standbys = [task for task in known.logs if str(task) in record.standbys]
            works = works_due(self.name, application.member(name).state_dir, standbys, known.logs, now)
            found[name] = [run_standby(self.connection, work, parts[work.task.subtopology]) for work in works]
        return found

    @property
    def known(self) -> KnownState:
        """The changelogs of all tasks, as they are now."""
        pipeline = pipeline_named(self.application.pipeline)
        return known_state(self.admin, self.name, pipeline, self.processing.tasks)

    @property
    def control(self) -> ControlTopic:
        return ControlTopic(self.connection, self.name)

    @property
    def processing(self) -> Processing:
        found = self.control.read().processing
        assert found is not None
        return found

    def says_it_runs(self, thread: str, run: str) -> None:
        """Leave the result of a thread that has begun. Nothing says that it has ended."""
        result = JobResult(job=f"process/1/{thread}", run=run, attempt=1, state="running")
        self.control.update(lambda _: {f"{Concern.RESULT}/{result.job}": result})

    def places(self) -> dict[str, tuple[str, list[str]]]:
        """For each task, the client that runs it and the clients that keep it warm."""
        found: dict[str, tuple[str, list[str]]] = {}
        for client in self.processing.clients:
            for task in client.active:
                keep = [c.client_id for c in self.processing.clients if str(task) in c.standbys]
                found[str(task)] = client.client_id, keep
        return found

    def saved_rows(self, client: str, task: str) -> list[dict[str, Any]]:
        """The rows in the newest saved state of a task on a client."""
        return saved_rows(str(self.state_dir(client)), self.name, task, "counts")

    def counts(self) -> dict[bytes, int]:
        """Return the last count of every key, and assert that each count was emitted once and in order."""
        ends = self.admin.end_offsets([OUTPUT])[OUTPUT]
        last: dict[bytes, int] = {}
        for message in read_ranges(self.connection, OUTPUT, {p: (0, end) for p, end in ends.items()}):
            key, count = message.key(), LONG.decode(message.value())
            assert isinstance(key, bytes)
            assert count == last.get(key, 0) + 1, (key, count)
            last[key] = count
        return last

    def expected(self) -> dict[bytes, int]:
        """The last count of every key, computed from the input alone."""
        numbers = [sum(n % 10 == digit for n in range(self.written)) for digit in range(10)]
        return {
            b"%d-%d" % (p, digit): count for p in range(PARTITIONS) for digit, count in enumerate(numbers) if count
        }
