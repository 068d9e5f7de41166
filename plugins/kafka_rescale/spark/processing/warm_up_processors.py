"""The warm-up of the processors that are split from a client's tasks, one Spark partition each, beside their run.

The client that has the parent task warms a new processor up. So when partitions change hands, there is a client
that has caught up and gets the new task. The next rebalance may move it like any other task (KIP-441).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.internal_topics import levels
from kafka_rescale.core.processing.request import WarmUpRequest
from kafka_rescale.core.processing.run_end import RunEnd, jobs_of
from kafka_rescale.core.processing.state_copies import NewTask
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.spark.jobs.begin import begin_process
from kafka_rescale.spark.jobs.job import Job, say
from kafka_rescale.spark.jobs.task_errors import as_text
from kafka_rescale.spark.processing.job import assigned
from kafka_rescale.spark.processing.processor_warm_up import WarmedUp, warm_up
from kafka_rescale.spark.processing.work import expansion_of

PAUSE_SECONDS = 3.0
"""Time between two passes beside threads that write."""


@dataclass(frozen=True)
class WarmUps:
    """Warms new processors up; one element of the RDD is one new processor."""

    connection: KafkaConnection
    state_dir: str

    def __call__(self, tasks: Iterable[NewTask]) -> Iterator[WarmedUp]:
        """Warm each processor up, and yield its result."""
        begin_process()
        for task in tasks:
            with as_text():
                done = warm_up(self.connection, task, self.state_dir)
            yield done


def warm_up_processors(job: Job) -> None:
    """Let the new processors that are split from a client's tasks copy the state that they lack.

    :raises UnsafeState: another run's assignment is in force, or the state is not placed by linear hashing.
    """
    request = WarmUpRequest.model_validate_json(job.arguments.request)
    job.key = request.key
    pipeline, (processing, processors) = pipeline_named(request.pipeline), assigned(job)
    client = processing.client(request.client_id)
    split = client.active if client is not None else ()
    job.put("running")
    began, as_of_ms, application = time.monotonic(), now_ms(), job.arguments.application
    tasks = [
        task
        for number in processors.expanding
        for task in expansion_of(application, pipeline, job.connection, processors, number)[0]
        if task.stores and task.parent in split
    ]
    writers = jobs_of(processing, levels(pipeline.topology), {str(task.parent) for task in tasks})
    followed = RunEnd(job.arguments.run, writers if request.follows else ())
    passes = list(_passes(job, tasks, WarmUps(job.connection, request.state_dir), followed))
    copied = sum(each.copied for done in passes for each in done)
    detail = "; ".join(map(str, passes[-1]))
    job.finish(records=copied, began=began, as_of_ms=as_of_ms, detail=detail)


def _passes(job: Job, tasks: Sequence[NewTask], action: WarmUps, followed: RunEnd) -> Iterator[list[WarmedUp]]:
    """Copy up to the ends again and again, the last time when no thread writes any more."""
    while True:
        is_over = followed.look(job.control.read().results, time.monotonic())
        done: list[WarmedUp] = job.on_partitions(tasks, action)
        for each in done:
            say(f"{job.key}: {each}")
        yield done
        if is_over:
            return
        job.put("running", detail="; ".join(map(str, done)))
        time.sleep(PAUSE_SECONDS)
