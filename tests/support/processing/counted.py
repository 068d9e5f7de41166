"""A pipeline of one sub-topology on a broker: its topics, its input, its runs, and everything it has written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.core.processing.internal_topics import changelog_configs
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.spark.processing.run import run_task
from kafka_rescale.spark.processing.task_work import TaskDone, TaskLimits, TaskWork

from tests.support.processing.counting_pipeline import SINK, SOURCES, STORE, Counting

T0 = 1_700_000_000_000
SMALL = TaskLimits(batch_records=7, records=20)


@dataclass(frozen=True)
class Counted:
    """An application of its own.

    :param inputs: names of the topics that it reads, if several applications read the same topics.
    :param made: makes its only sub-topology. It reads both sources and has one sink.
    """

    connection: KafkaConnection
    name: str
    state_dir: Path
    inputs: str = ""
    partitions: int = 2
    changelog_configs: Mapping[str, str] = field(default_factory=dict)
    made: Callable[[], SubTopology] = Counting

    @property
    def part(self) -> SubTopology:
        return self.made()

    @property
    def names(self) -> dict[str, str]:
        of_inputs = {source: f"{self.inputs or self.name}-{source}" for source in SOURCES}
        return {**of_inputs, SINK: f"{self.name}-{SINK}"}

    @property
    def changelog(self) -> str:
        return f"{self.name}-{STORE}-changelog"

    @property
    def changelogs(self) -> dict[str, str]:
        return {store.name: f"{self.name}-{store.changelog_topic}" for store in self.part.stores}

    @property
    def admin(self) -> ClusterAdmin:
        return ClusterAdmin(self.connection)

    def create(self) -> None:
        for topic in self.names.values():
            self.admin.ensure_topic(topic, self.partitions, 1, {"retention.ms": "-1"})
        self.create_changelog()

    def create_changelog(self) -> None:
        # The records are years old. They must not expire, or be compacted when today's markers roll segments.
        kept = {"retention.ms": "-1", "min.compaction.lag.ms": str(2**63 - 1), **self.changelog_configs}
        for store in self.part.stores:
            configs = {**changelog_configs(store), **kept}
            self.admin.ensure_topic(self.changelogs[store.name], self.partitions, 1, configs)

    def work(self, partition: int, limits: TaskLimits = SMALL) -> TaskWork:
        sources = [self.names[source] for source in SOURCES]
        ends = self.admin.end_offsets(sources)
        return TaskWork(
            application_id=self.name,
            task=TaskId(0, partition),
            names=self.names,
            ends={(topic, partition): ends[topic][partition] for topic in sources},
            topics=self.admin.describe_topics([self.names[SINK], *self.changelogs.values()]),
            state_dir=str(self.state_dir),
            limits=limits,
        )

    def run(self, limits: TaskLimits = SMALL, **arguments: Any) -> list[TaskDone]:
        """Run every task once."""
        works = [self.work(partition, limits) for partition in range(self.partitions)]
        return [run_task(self.connection, work, self.part, **arguments) for work in works]

    def left(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return all committed records of outputs and changelogs, per partition and in order."""
        return {
            f"{topic}-{partition}": [
                (m.key(), m.value(), m.timestamp()[1], m.headers())
                for m in read_ranges(self.connection, full, {partition: (0, end)})
            ]
            for topic, full in {SINK: self.names[SINK], **self.changelogs}.items()
            for partition, end in self.admin.end_offsets([full], read_committed=False)[full].items()
        }

    def committed(self) -> dict[str, dict[int, int]]:
        return self.admin.committed(self.name)


def write(connection: KafkaConnection, name: str, records: Iterable[tuple[str, int, bytes, bytes, int]]) -> None:
    """Write records to the inputs. A record is source, partition, key, value and ms after ``T0``."""
    producer = Producer(connection.client(**{"linger.ms": 5}))
    for source, partition, key, value, at in records:
        producer.produce(
            f"{name}-{source}", value, key, partition, timestamp=T0 + at, headers=[("n", str(at).encode())]
        )
    assert producer.flush(30) == 0
