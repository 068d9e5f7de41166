"""What runs in Spark's Python workers for a pipeline: one task at a time, whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.spark.task_errors import as_text
from kafka_rescale.spark.task_run import run_task
from kafka_rescale.spark.task_work import TaskDone, TaskWork
from kafka_rescale.spark.watchdog import exit_with_parent


@dataclass(frozen=True)
class RunTasks:
    """Runs tasks of a pipeline; one element of the RDD is what one task has to do.

    :param pipeline: ``module:name``, imported where the task runs.
    """

    connection: KafkaConnection
    pipeline: str

    def __call__(self, works: Iterable[TaskWork]) -> Iterator[TaskDone]:
        """Yield what each task has done."""
        exit_with_parent()
        for work in works:
            with as_text():
                parts = {part.id: part for part in pipeline_named(self.pipeline).sub_topologies()}
                done = run_task(self.connection, work, parts[work.task.subtopology])
            yield done
