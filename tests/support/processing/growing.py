"""A pipeline that runs, grows and is killed, with a process for each thread of a run."""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.control.processors import ProcessorCounts
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.internal_topics import levels
from kafka_rescale.core.processing.request import WarmUpRequest
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.operations.processing.prepare import Prepared, prepare
from kafka_rescale.operations.processing.processors import is_split
from kafka_rescale.spark.processing.job import process
from kafka_rescale.spark.processing.task_work import TaskWork
from kafka_rescale.spark.processing.warm_up_processors import warm_up_processors
from kafka_rescale.spark.processing.work import expansion_of, input_ends, works_of

from tests.support.processing.folding_pipeline import STORE
from tests.support.processing.inline_jobs import Body, Request, requests, run_job, started_job
from tests.support.processing.killed import SECONDS
from tests.support.processing.saved_state import saved_rows

INITIAL = 2
Job = tuple[Request, Body]


@dataclass
class Growing:
    """An application of the folding pipeline.

    :param topic: its input.
    :param chance: decides which processes are killed, and when. With None, no process is killed.
    :param inline: whether all jobs run in this process, one after the other.
    :param follows: whether warm-ups last until the threads of their run have ended.
    :param scaling: what the file says of autoscaling.
    :param static: the input's static partitioner, if it has one.
    :param program: the beginning of the name of its program.
    :param clients: ids of clients. Without ids, the file has no `clients` and therefore only one client.
    """

    connection: KafkaConnection
    topic: str
    state_dir: Path
    linear: bool = True
    chance: random.Random | None = None
    settle_ms: int = 0
    inline: bool = False
    acceptable_lag: int = 100
    clients: tuple[str, ...] = ()
    follows: bool = False
    static: str = ""
    program: str = "of"
    scaling: dict[str, Any] = field(default_factory=dict)
    runs: int = 0
    kills: int = 0

    @property
    def application(self) -> PipelineApplication:
        return PipelineApplication.model_validate(self.declared)

    @property
    def declared(self) -> dict[str, Any]:
        """What its application file says."""
        linear = {self.topic: INITIAL} if self.linear else {}
        clients = [{"client.id": name, "state.dir": str(self.state_dir / name)} for name in self.clients]
        places = {"clients": clients} if clients else {"state.dir": str(self.state_dir)}
        return {
            "application_id": f"{self.topic}-app",
            "runtime": "spark",
            "pipeline": f"tests.support.processing.folding_pipeline:{self.program}_{self.topic}",
            "num.stream.threads": 1 if clients else 2,
            **places,
            "linear_hashing": linear,
            "static_partitioners": {self.topic: self.static} if self.static else {},
            "partition.growth.settle.ms": self.settle_ms,
            "acceptable.recovery.lag": self.acceptable_lag,
            **self.scaling,
        }

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
        """Make one run as the DAG does: assign tasks, then run a job per thread with warm-ups beside.

        Return what the assignment said.
        """
        prepared = self.assign()
        jobs = [*self._warm_ups(), *self._threads(prepared.processing)]
        if self.inline:
            self._run(jobs)
        else:
            self._run_beside_each_other(jobs)
        return str(prepared)

    def assign(self) -> Prepared:
        """Begin another run."""
        self.runs += 1
        return prepare(self.application, self.connection, self.run_id)

    def warm_up(self) -> None:
        """Run only the jobs in which new processors copy their state."""
        self._run(self._warm_ups())

    @property
    def run_id(self) -> str:
        return f"process_{self.topic}/{self.runs}"

    def _attempt(self, number: int) -> tuple[KafkaConnection, str, str, int]:
        return self.connection, self.application.application_id, self.run_id, number

    def _warm_ups(self) -> list[Job]:
        application = self.application
        return [
            (
                WarmUpRequest.of(application, client.client_id, follows=self.follows),
                warm_up_processors,
            )
            for client in application.members
            if is_split(application.application_id, self.connection, client.client_id)
        ]

    def _threads(self, processing: Processing) -> list[Job]:
        """Return the jobs of all levels; those of several levels have to run one after the other (``inline``)."""
        application = self.application
        count = len(levels(pipeline_named(application.pipeline).topology))
        asked = (requests(application, processing.running, level) for level in range(1, count + 1))
        return [(request, process) for requests_of_level in asked for request in requests_of_level]

    def _run(self, jobs: list[Job]) -> None:
        for request, body in jobs:
            code = run_job(*self._attempt(1), request, body)
            assert code == 0, self.control.read().results[request.key].detail

    def _run_beside_each_other(self, jobs: list[Job]) -> None:
        """Start killed threads again, as Airflow does. Leave killed warm-ups to the next run."""
        for attempt in itertools.count(1):
            running = [(job, self._started(attempt, *job)) for job in jobs]
            for _, each in running:
                each.join(SECONDS)
            codes = {job[0].key: each.exitcode for job, each in running}
            assert set(codes.values()) <= {0, -signal.SIGKILL}, codes
            jobs = [job for job, each in running if each.exitcode != 0 and job[1] is process]
            if not jobs:
                return

    def works(self) -> list[TaskWork]:
        """The work of this run, if it were begun again now."""
        state = self.control.read()
        assert state.processing is not None
        tasks = [task for name in state.processing.running for task in state.processing.tasks_of(name, [0])]
        pipeline, name = pipeline_named(self.application.pipeline), self.application.application_id
        ends = input_ends(self.admin, pipeline, name, state.processors)
        return works_of(self.admin, pipeline, name, tasks, str(self.state_dir), state.processors, inputs=ends)

    @property
    def part(self) -> Any:
        """The only sub-topology."""
        return pipeline_named(self.application.pipeline).sub_topologies()[0]

    def owners(self) -> dict[str, str]:
        """The client that runs each task."""
        state = self.control.read()
        assert state.processing is not None
        return {str(task): client.client_id for client in state.processing.clients for task in client.active}

    def restored(self) -> dict[int, int]:
        """How far each new processor has restored: its committed offsets in the changelog, summed (T2)."""
        application, record = self.application, self.control.read().processors
        pipeline = pipeline_named(application.pipeline)
        tasks, _ = expansion_of(application.application_id, pipeline, self.connection, record, 0)
        return {
            task.task.partition: sum(self.admin.committed(task.group)[self.changelog].values()) for task in tasks
        }

    def outputs(self, topic: str = "folded") -> dict[bytes, list[tuple[Any, ...]]]:
        """All records that were written, by key and in order."""
        found: dict[bytes, list[tuple[Any, ...]]] = defaultdict(list)
        for m in self.records(f"{self.topic}-{topic}"):
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

    def saved(self, client: str, processor: int) -> dict[bytes, bytes]:
        """The state of a processor in the files of a client."""
        place = self.application.member(client).state_dir
        rows = saved_rows(place, self.application.application_id, f"0_{processor}", STORE)
        return {row["key"]: row["value"] for row in rows}

    def ever_in(self) -> dict[bytes, set[int]]:
        """The processors whose changelogs have a record of a key, for every key."""
        found: dict[bytes, set[int]] = defaultdict(set)
        for m in self.records(self.changelog):
            found[m.key()].add(m.partition())
        return dict(found)

    def _started(self, attempt: int, request: Request, body: Body) -> Any:
        begun = started_job(*self._attempt(attempt), request, body)
        if self.chance is not None and self.chance.random() < 0.5:
            threading.Timer(self.chance.uniform(0.0, 1.5), self._kill, [begun]).start()
        return begun

    def _kill(self, begun: Any) -> None:
        if begun.exitcode is None and begun.is_alive():
            os.kill(begun.pid, signal.SIGKILL)
            self.kills += 1

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "chance": None}
