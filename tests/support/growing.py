"""A pipeline that is run, grown and killed: its runs, a process per thread, and the producers of its input."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from kafka_rescale.core.linear_hashing import LinearHashing
from kafka_rescale.core.pipeline_application import PipelineApplication
from kafka_rescale.core.pipelines import pipeline_named
from kafka_rescale.core.processing.processors_record import ProcessorCounts
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.control_topic import ControlTopic
from kafka_rescale.kafka.range_reader import read_ranges
from kafka_rescale.operations.processing import prepare
from kafka_rescale.spark.process_work import expansion_of, works_of
from kafka_rescale.spark.processor_warm_up import warm_up
from kafka_rescale.spark.stream_task import run_task
from kafka_rescale.spark.task_work import TaskWork

from tests.support.folding_pipeline import STORE

INITIAL = 2
T0 = 1_700_000_000_000
SECONDS = 120

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["tests.support.growing"])


@dataclass
class Growing:
    """An application of the folding pipeline.

    :param topic: its input.
    :param chance: decides which processes are killed, and when; None kills none.
    :param inline: whether everything runs in this process, one after the other.
    """

    connection: KafkaConnection
    topic: str
    state_dir: Path
    linear: bool = True
    chance: random.Random | None = None
    settle_ms: int = 0
    inline: bool = False
    acceptable_lag: int = 100
    runs: int = 0
    kills: int = 0

    @property
    def application(self) -> PipelineApplication:
        declared = {self.topic: INITIAL} if self.linear else {}
        return PipelineApplication.model_validate(
            {
                "application_id": f"{self.topic}-app",
                "runtime": "spark",
                "pipeline": f"tests.support.folding_pipeline:of_{self.topic}",
                "num.stream.threads": 2,
                "state.dir": str(self.state_dir),
                "linear_hashing": declared,
                "partition.growth.settle.ms": self.settle_ms,
                "acceptable.recovery.lag": self.acceptable_lag,
            }
        )

    @property
    def admin(self) -> ClusterAdmin:
        return ClusterAdmin(self.connection)

    @property
    def control(self) -> ControlTopic:
        return ControlTopic(self.connection, self.application.application_id)

    @property
    def counts(self) -> ProcessorCounts:
        return self.control.read().processors.sub_topologies[0]

    @property
    def changelog(self) -> str:
        return f"{self.application.application_id}-{STORE}-changelog"

    def create(self, partitions: int = INITIAL) -> None:
        for name in (self.topic, f"{self.topic}-folded"):
            self.admin.ensure_topic(name, partitions, 1, {"retention.ms": "-1"})

    def run(self) -> str:
        """One run as the DAG does it: assignment, a process per thread, warm-ups beside; return what was said."""
        self.runs += 1
        run = f"process_{self.topic}/{self.runs}"
        said = str(prepare(self.application, self.connection, run))
        if self.inline:
            _warm_up(self)
            for thread in list((self.control.read().processing or _nothing()).running):
                _run_thread(self, thread)
            return said
        warming = self._started(_warm_up, self)
        threads = list((self.control.read().processing or _nothing()).running)
        while threads:
            started = {thread: self._started(_run_thread, self, thread) for thread in threads}
            for process in started.values():
                process.join(SECONDS)
            codes = {thread: process.exitcode for thread, process in started.items()}
            assert set(codes.values()) <= {0, -signal.SIGKILL}, codes
            threads = [thread for thread, code in codes.items() if code != 0]
        warming.join(SECONDS)
        assert warming.exitcode in {0, -signal.SIGKILL}, warming.exitcode
        return said

    def works(self, thread: str | None = None) -> list[TaskWork]:
        """What a thread has to do in this run, or all of them."""
        state = self.control.read()
        assert state.processing is not None
        names = state.processing.running if thread is None else (thread,)
        tasks = [task for name in names for task in state.processing.tasks_of(name, [0])]
        pipeline = pipeline_named(self.application.pipeline)
        name, directory = self.application.application_id, self.application.state_dir
        return works_of(self.admin, pipeline, name, tasks, directory, state.processors)

    @property
    def part(self) -> Any:
        """The only sub-topology."""
        return pipeline_named(self.application.pipeline).sub_topologies()[0]

    def restored(self) -> dict[int, int]:
        """T2 of each new processor."""
        application, record = self.application, self.control.read().processors
        pipeline = pipeline_named(application.pipeline)
        tasks, _ = expansion_of(application.application_id, pipeline, self.connection, record, 0)
        return {
            task.task.partition: sum(self.admin.committed(task.group)[self.changelog].values()) for task in tasks
        }

    def outputs(self) -> dict[bytes, list[tuple[Any, ...]]]:
        """Everything that was written, by key, in order."""
        found: dict[bytes, list[tuple[Any, ...]]] = defaultdict(list)
        for m in self.records(f"{self.topic}-folded"):
            found[m.key()].append((m.value(), m.timestamp()[1], m.headers()))
        return dict(found)

    def records(self, topic: str) -> Any:
        ends = self.admin.end_offsets([topic])[topic]
        return read_ranges(self.connection, topic, {p: (0, end) for p, end in ends.items()})

    def state(self) -> dict[int, dict[bytes, bytes]]:
        """What each processor's changelog holds."""
        found: dict[int, dict[bytes, bytes]] = defaultdict(dict)
        for m in self.records(self.changelog):
            entries = found[m.partition()]
            entries.pop(m.key(), None)
            if m.value() is not None:
                entries[m.key()] = m.value()
        return {partition: found[partition] for partition in sorted(found)}

    def ever_in(self) -> dict[bytes, set[int]]:
        """In which processors' changelogs each key has ever been."""
        found: dict[bytes, set[int]] = defaultdict(set)
        for m in self.records(self.changelog):
            found[m.key()].add(m.partition())
        return dict(found)

    def _started(self, target: Any, *arguments: Any) -> Any:
        process = processes.Process(target=target, args=arguments, daemon=True)
        process.start()
        if self.chance is not None and self.chance.random() < 0.5:
            threading.Timer(self.chance.uniform(0.0, 1.5), self._kill, [process]).start()
        return process

    def _kill(self, process: Any) -> None:
        if process.exitcode is None and process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            self.kills += 1

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "chance": None}


def _nothing() -> Any:
    raise AssertionError("no assignment")


def _run_thread(growing: Growing, thread: str) -> None:
    for work in growing.works(thread):
        run_task(growing.connection, work, growing.part)


def _warm_up(growing: Growing) -> None:
    application, processors = growing.application, growing.control.read().processors
    for number in processors.expanding:
        pipeline = pipeline_named(application.pipeline)
        tasks, _ = expansion_of(application.application_id, pipeline, growing.connection, processors, number)
        for task in tasks:
            warm_up(growing.connection, task, application.state_dir, every=500)


def write(connection: KafkaConnection, topic: str, partitions: int, numbers: range) -> None:
    """Write numbered records of 60 keys, as a producer that knows of so many partitions."""
    producer = Producer(connection.client(**{"linger.ms": 5}))
    hashing = LinearHashing(INITIAL)
    for number in numbers:
        key = b"k%d" % (number % 60)
        at = T0 + 10 * number + (number * 7919) % 3_000
        producer.produce(topic, b"%d" % number, key, hashing.partition(key, partitions), timestamp=at)
    assert producer.flush(30) == 0


def produce(
    connection: KafkaConnection,
    topics: tuple[str, str],
    name: str,
    stop: Any,
    sent: Any,
    max_age: float = 0.5,
    per_second: int = 400,
) -> None:
    """Write the same records to two topics, until told to stop: times go back and forth, keys recur.

    Keys are placed by linear hashing over the partitions that the producer knows of, which it asks for once in
    ``max_age`` seconds; what was sent before is acknowledged before it uses new ones (KIP-253).
    """
    producer = Producer(connection.client(**{"linger.ms": 5, "enable.idempotence": True}))
    chance, number, asked = random.Random(name), 0, 0.0
    hashing, counts = LinearHashing(INITIAL), dict.fromkeys(topics, 0)
    while not stop.is_set():
        if time.monotonic() - asked > max_age:
            for topic in topics:
                known = len(producer.list_topics(topic, 10).topics[topic].partitions)
                if known != counts[topic]:
                    assert producer.flush(30) == 0
                    counts[topic] = known
            asked = time.monotonic()
        for _ in range(20):
            key, value = b"%s%d" % (name.encode(), chance.randrange(60)), b"%d" % number
            timestamp = T0 + 10 * number + chance.randrange(-5_000, 5_000) + 10_000
            for topic in topics:
                partition = hashing.partition(key, counts[topic])
                producer.produce(topic, value, key, partition, timestamp=timestamp)
            number += 1
        producer.poll(0)
        time.sleep(20 / per_second)
    assert producer.flush(30) == 0
    sent.value = number
