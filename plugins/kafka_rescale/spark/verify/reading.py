"""How many records Spark has read for a comparison so far."""

from __future__ import annotations

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


def records_read(context: SparkContext, name: str) -> int:
    """Return how many records the tasks of a reading have read; running tasks report that every few seconds.

    Spark does not count what its Kafka source reads. But a task that reads topics writes as many records for the
    shuffle, and Spark counts these.
    """
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(name))
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    return sum(_read_by(store, stage) for stage in stages)


def _read_by(store: Any, stage: int) -> int:
    try:
        found = store.lastStageAttempt(stage)
        return 0 if found.shuffleReadRecords() else int(found.shuffleWriteRecords())
    except Exception:
        # Spark has forgotten the stage: it keeps the last thousand.
        return 0
