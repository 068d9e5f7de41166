"""The Spark session of a copy job."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def copy_session(job: str, application: str, run: str, attempt: int) -> SparkSession:
    """Return a session that runs every task once, named after the run it belongs to.

    A second copy of a task would fence the first, so there is neither speculation nor a retry inside Spark: the
    next attempt at the whole job goes on from the committed positions.

    :param attempt: of the run's task, for people who look at Spark's UI.
    """
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.appName(f"kafka-rescale {job} {application} ({run}, attempt {attempt})")
        .config("spark.speculation", "false")
        .config("spark.task.maxFailures", "1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "WARN")
        .getOrCreate()
    )
