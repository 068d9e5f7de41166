"""The Spark session of a copy job, and how many of its tasks can run at a time."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.spark.jobs.executors import watch_executors

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

SETTLED_SECONDS = 3.0
"""Executors register one after the other. If no further executor follows in this time, the number is final."""
WAITED_SECONDS = 30.0
POLL_SECONDS = 0.1
REDACTED = r"(?i)secret|password|token|access[.]?key|credential|jaas|keystore|url"
"""Spark's default patterns redact neither a JAAS line nor a key."""
PACKAGES = ("confluent_kafka", "pydantic")
READING: Mapping[str, str] = {
    "spark.ui.showConsoleProgress": "false",
    # Kafka's clients would log all their settings for every task: megabytes around the report.
    "spark.log.level": "WARN",
    # The settings of the Kafka clients are options of the source.
    "spark.redaction.regex": REDACTED,
    "spark.sql.redaction.options.regex": REDACTED,
    # PySpark would record for each column where in Python it was made, which takes half of a large plan's time.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Spark's default without ``kafka``. Its first kind of source makes objects of each record and takes them apart
    # again, and generates the code for that once for each partition.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
}
"""Settings of a session that reads topics by Spark's own Kafka source."""


def copy_session(job: str, application: str, run: str, attempt: int) -> SparkSession:
    """Return a session that runs every task once, named after the run it belongs to.

    A second copy of a task would fence the first. So Spark does not speculate and does not retry tasks: the next
    attempt at the whole job goes on from the committed positions.

    :param attempt: number of the attempt at the run's task, for readers of Spark's UI.
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
    watch_executors(session.sparkContext)
    return session


def reading_session(job: str, application: str, run: str, attempt: int) -> SparkSession:
    """Return a session that reads topics by Spark's own Kafka source.

    :param attempt: as in ``copy_session``.
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(f"kafka-rescale {job} {application} ({run}, attempt {attempt})")
    session = builder.config(map=dict(READING)).getOrCreate()
    watch_executors(session.sparkContext)
    return session


def slots(context: SparkContext) -> int:
    """Return how many tasks run at a time, once executors have registered.

    ``defaultParallelism`` would be 2 on a cluster whose executors are still starting, and also on a cluster with a
    single core. There, a task that follows a topic until it is told to end would block a second task for ever.

    Source: ``SparkContext.maxNumConcurrentTasks``, with which Spark itself checks barrier stages.

    :param context: a context that has run a task already, so that there is an executor.
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
    """Run a task, which needs an executor, and check that it has the packages that our tasks import.

    With a local master there is nothing to check: the tasks have the driver's packages.

    :raises InvalidInput: a package is missing. Without this check, only a stack trace of the job's first task
        would tell that.
    """
    if context._jsc.sc().isLocal():
        return
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


def running_tasks(spark: SparkSession) -> int:
    """Return how many tasks run now; 0 between two stages."""
    tracker = spark.sparkContext.statusTracker()
    found = [info for i in tracker.getActiveStageIds() if (info := tracker.getStageInfo(i)) is not None]
    return sum(info.numActiveTasks for info in found)
