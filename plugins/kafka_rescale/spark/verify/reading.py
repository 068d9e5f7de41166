"""How many records Spark has read for a comparison so far."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext

_numbers = count(1)


def begin_reading(context: SparkContext) -> str:
    """Count what this thread lets Spark read from now on, and return the name of this reading."""
    name = f"kafka-rescale reading {next(_numbers)}"
    context.setJobGroup(name, "compares stores")
    return name


@dataclass(frozen=True)
class Read:
    """What Spark has read.

    :param is_whole: whether nothing is left to be read, so that Spark sorts and compares.
    """

    records: int
    is_whole: bool


def read_so_far(context: SparkContext, name: str) -> Read:
    """Return what the tasks of a reading have read; running tasks report that every few seconds.

    Spark does not count what its Kafka source reads. But a task that reads topics writes as many records for the
    shuffle, and Spark counts these. A plan has one scan of all topics, which ends before a task reads a shuffle.
    """
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(name))
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    counts = [_shuffled(store, stage) for stage in stages]
    return Read(sum(written for read, written in counts if not read), any(read for read, _ in counts))


def _shuffled(store: Any, stage: int) -> tuple[int, int]:
    """Return how many records a stage has read from a shuffle, and written for one."""
    try:
        found = store.lastStageAttempt(stage)
        return int(found.shuffleReadRecords()), int(found.shuffleWriteRecords())
    except Exception:
        # Spark has forgotten the stage: it keeps the last thousand.
        return 0, 0
