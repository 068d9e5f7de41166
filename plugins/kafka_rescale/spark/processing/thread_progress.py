"""The progress of a stream thread's job, with the moment of its last sign of progress."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.processing.task_progress import TaskProgress
from kafka_rescale.kafka.reading.progress import Snapshot

if TYPE_CHECKING:
    from pyspark import SparkContext


class ThreadProgress:
    """Reads the progress of a thread's tasks. A sign of progress is a task that begins or ends, or a commit.

    A task commits every few seconds while it processes, and also while it restores its state.

    :param committed: what the tasks have committed.
    :param context: the Spark context in which the tasks run.
    """

    def __init__(self, committed: TaskProgress, context: SparkContext) -> None:
        self._committed, self._context = committed, context
        self._sign: object = None
        self._progressed_ms = 0

    def read(self) -> Snapshot:
        """Return the positions of the tasks.

        :raises Outage: the brokers don't answer in time.
        """
        snapshot = self._committed.read()
        tasks = self._tasks()
        sign = (tasks, self._committed.committed)
        if any(tasks) and sign != self._sign:
            self._sign, self._progressed_ms = sign, now_ms()
        return replace(snapshot, progressed_ms=self._progressed_ms)

    def _tasks(self) -> tuple[int, int]:
        """Return how many tasks Spark has begun on an executor, and how many have ended, well or not."""
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup()]
        found = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        stages = [stage for stage in found if stage is not None]
        ended = sum(stage.numCompletedTasks + stage.numFailedTasks for stage in stages)
        return ended + sum(stage.numActiveTasks for stage in stages), ended
