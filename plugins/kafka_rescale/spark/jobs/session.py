"""The Spark session of a copy job, and how much of it can run at a time."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from kafka_rescale.core.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

SETTLED_SECONDS = 3.0
"""Executors of a cluster register one after the other; when none has for so long, these are all."""
WAITED_SECONDS = 30.0
POLL_SECONDS = 0.1
PACKAGES = ("confluent_kafka", "pydantic")


def copy_session(job: str, application: str, run: str, attempt: int) -> SparkSession:
    """Return a session that runs every task once, named after the run it belongs to.

    A second copy of a task would fence the first, so there is neither speculation nor a retry inside Spark: the
    next attempt at the whole job goes on from the committed positions.

    :param attempt: of the run's task, for people who look at Spark's UI.
    :raises InvalidInput: an executor lacks a package.
    """
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.appName(f"kafka-rescale {job} {application} ({run}, attempt {attempt})")
        .config("spark.speculation", "false")
        .config("spark.task.maxFailures", "1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "WARN")
        .getOrCreate()
    )
    if not session.sparkContext._jsc.sc().isLocal():
        require_packages(session.sparkContext)
    return session


def slots(context: SparkContext) -> int:
    """Return how many tasks run at a time, once executors have registered.

    ``defaultParallelism`` would be 2 on a cluster whose executors are still starting, and on one with a single
    core, where a task that follows a topic until it is told to end would have the other wait behind it.

    Source: ``SparkContext.maxNumConcurrentTasks``, by which Spark itself checks barrier stages.

    :param context: for which a task has run already, so that there is an executor.
    """
    scala = context._jsc.sc()
    profile = scala.resourceProfileManager().defaultResourceProfile()
    if scala.isLocal():
        return int(scala.maxNumConcurrentTasks(profile))
    found, since, began = 0, time.monotonic(), time.monotonic()
    while (now := time.monotonic()) < min(since + SETTLED_SECONDS, began + WAITED_SECONDS):
        known, found = found, int(scala.maxNumConcurrentTasks(profile))
        since = now if found != known else since
        time.sleep(POLL_SECONDS)
    return max(1, found)


def require_packages(context: SparkContext) -> None:
    """Run a task, for which there must be an executor, and see that it has what ours import.

    :raises InvalidInput: it hasn't, which a job would else say in a stack trace of its first task.
    """
    missing = context.parallelize([PACKAGES], 1).flatMap(_missing).collect()
    if missing:
        raise InvalidInput(
            "Spark executors",
            found=", ".join(missing),
            expected=f"the Python packages {', '.join(PACKAGES)} on every machine that runs executors",
            remedy="Install requirements-spark.txt there for the Python that spark.pyspark.python names.",
        )


def _missing(packages: Sequence[str]) -> list[str]:
    where = f"on {socket.gethostname()}, {sys.executable}"
    return [f"no {each} {where}" for each in packages if find_spec(each) is None]
