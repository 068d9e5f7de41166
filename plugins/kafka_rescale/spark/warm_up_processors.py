"""The warm-up of the processors that are split from a client's, one Spark partition each, beside their run.

Each is warmed up where the task is that it is split from. So when partitions change hands there is a client that
has caught up, and is given the new task; whether it moves on from there is decided as for any other (KIP-441).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafka_rescale.core.pipelines import pipeline_named
from kafka_rescale.core.processing.request import WarmUpRequest
from kafka_rescale.core.processing.state_copies import NewTask
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.waiting import now_ms
from kafka_rescale.spark.job import Job, say
from kafka_rescale.spark.process import assigned
from kafka_rescale.spark.process_work import expansion_of
from kafka_rescale.spark.processor_warm_up import WarmedUp, warm_up
from kafka_rescale.spark.task_errors import as_text
from kafka_rescale.spark.watchdog import exit_with_parent


@dataclass(frozen=True)
class WarmUps:
    """Warms new processors up; one element of the RDD is one of them."""

    connection: KafkaConnection
    state_dir: str

    def __call__(self, tasks: Iterable[NewTask]) -> Iterator[WarmedUp]:
        """Yield what each has done."""
        exit_with_parent()
        for task in tasks:
            with as_text():
                done = warm_up(self.connection, task, self.state_dir)
            yield done


def warm_up_processors(job: Job) -> None:
    """Let the new processors that are split from a client's tasks copy what they lack of their state.

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
    done: list[WarmedUp] = job.on_partitions(tasks, WarmUps(job.connection, request.state_dir))
    for each in done:
        say(f"{job.key}: {each}")
    copied = sum(each.copied for each in done)
    job.finish(records=copied, began=began, as_of_ms=as_of_ms, detail="; ".join(map(str, done)))
