"""Where the Spark jobs and the connector they need are."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

JOBS = "KAFKA_RESCALE_SPARK_JOBS"
JARS = "KAFKA_RESCALE_SPARK_JARS"
SCALA = "2.13"


def job_file(job: str) -> Path:
    """Return a job's file, in the directory named by ``KAFKA_RESCALE_SPARK_JOBS`` or beside the plugins."""
    beside = Path(__file__).resolve().parents[3] / "spark_jobs"
    return Path(os.environ.get(JOBS) or beside) / f"{job}.py"


def connector() -> tuple[str | None, str | None]:
    """Return ``(jars, packages)``, one of them None: what Spark lacks to read Kafka.

    ``KAFKA_RESCALE_SPARK_JARS`` (comma-separated, or a directory) comes first, then the jars that the embedded
    set-up has fetched; else Spark fetches the connector of its own version when the job is submitted.
    """
    from kafka_rescale.embedded.jars import jars_directory

    given = os.environ.get(JARS, "")
    directory = Path(given) if given else jars_directory("connector")
    found = sorted(map(str, directory.glob("*.jar"))) if directory.is_dir() else []
    if found or given:
        return ",".join(found) or given, None
    return None, f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{version('pyspark')}"
