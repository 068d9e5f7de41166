"""Stream threads that are added, removed and killed at random while their pipeline has work."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.internal_topics import levels
from kafka_rescale.core.processing.request import ProcessRequest
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.processing.prepare import is_idle, prepare
from kafka_rescale.operations.processing.stream_threads import add_stream_thread, remove_stream_thread

from tests.support.processing.inline_jobs import requests, started_job
from tests.support.processing.thread_model import Client
from tests.support.processing.word_load import PARTITIONS

ADD, REMOVE, KILL = "add", "remove", "kill"
MOST_THREADS = 4
JOB_SECONDS = 120
TASKS = {0: PARTITIONS, 1: PARTITIONS}


@dataclass
class Runs:
    """The runs of a pipeline. During each run, threads can be added, removed or killed.

    :param done: number of the events that have happened, by kind.
    """

    application: PipelineApplication
    connection: KafkaConnection
    chance: random.Random
    client: Client
    done: Counter[str] = field(default_factory=Counter)
    number: int = 0

    @property
    def control(self) -> ControlTopic:
        return ControlTopic(self.connection, self.application.application_id)

    def run(self, events: list[str]) -> None:
        """Make one run, with these events at random moments.

        A kill that finds no live process stays in the list.
        """
        self.number += 1
        run_id = f"process/{self.number}"
        processing = prepare(self.application, self.connection, run_id).processing
        self.client.next_run()
        self.client.check_assignment(processing, TASKS)
        count = len(levels(pipeline_named(self.application.pipeline).topology))
        for level in range(1, count + 1):
            here = list(events) if level == count else [e for e in events if self.chance.random() < 1 / count]
            for event in here:
                events.remove(event)
            self._level(run_id, level, processing, here, events)
            found = self.control.read().processing
            assert found is not None
            self.client.check(found)

    def _level(self, run_id: str, level: int, processing: Processing, events: list[str], left: list[str]) -> None:
        """Run the threads of a level beside each other. Start a killed thread again, as Airflow does."""
        asked = [
            request
            for request in requests(self.application, processing.running, level)
            if not is_idle(self.application, self.connection, run_id, request)
        ]
        running = [(request, self._started(run_id, 1, request)) for request in asked]
        for event in events:
            time.sleep(self.chance.random() / 2)
            if event != KILL:
                self._ask(event)
            elif not self._killed(running):
                left.append(event)
        for request, process in running:
            process.join(JOB_SECONDS)
            last = process
            if process.exitcode == -signal.SIGKILL:
                last = self._started(run_id, 2, request)
                last.join(JOB_SECONDS)
            assert last.exitcode == 0, self.control.read().results[request.key]

    def _ask(self, event: str) -> None:
        name = self.application.application_id
        if event == ADD:
            assert add_stream_thread(name, self.connection) == self.client.add()
        else:
            self.client.remove(remove_stream_thread(name, self.connection))
        self.done[event] += 1

    def _killed(self, running: list[tuple[ProcessRequest, Any]]) -> bool:
        alive = [process for _, process in running if process.is_alive()]
        if not alive:
            return False
        victim = self.chance.choice(alive)
        os.kill(victim.pid, signal.SIGKILL)
        victim.join(JOB_SECONDS)
        self.done[KILL] += victim.exitcode == -signal.SIGKILL
        return victim.exitcode == -signal.SIGKILL

    def _started(self, run_id: str, attempt: int, request: ProcessRequest) -> Any:
        return started_job(self.connection, self.application.application_id, run_id, attempt, request)


def next_events(left: list[str], alive: int, chance: random.Random) -> list[str]:
    """Take up to three of the events that are left. Afterwards there is at least one thread, and not too many."""
    taken: list[str] = []
    wanted = chance.choice((1, 2, 3))
    for event in list(left):
        if len(taken) == wanted:
            break
        after = alive + (event == ADD) - (event == REMOVE)
        if 1 <= after <= MOST_THREADS:
            left.remove(event)
            taken.append(event)
            alive = after
    return taken
