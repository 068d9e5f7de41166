"""Where the Spark jobs and the connector they need are."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from zipfile import ZipFile, is_zipfile

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.installation import CONNECTOR, SPARK_JOBS, own_file

JOBS = "KAFKA_RESCALE_SPARK_JOBS"
JARS = "KAFKA_RESCALE_SPARK_JARS"
SCALA = "2.13"
FETCHED = own_file(CONNECTOR)
"""Where `make setup` puts the jars that Spark needs to read Kafka and doesn't have."""


def job_file(job: str) -> Path:
    """Return a job's file, in the directory named by ``KAFKA_RESCALE_SPARK_JOBS`` or the one of this project."""
    return Path(os.environ.get(JOBS) or own_file(SPARK_JOBS)) / f"{job}.py"


def connector() -> tuple[str | None, str | None]:
    """Return ``(jars, packages)`` that Spark needs to read Kafka and doesn't have; one of the two is None.

    ``KAFKA_RESCALE_SPARK_JARS`` (comma-separated, or a directory) comes first, then the jars that `make setup` has
    fetched. Without either, Spark fetches the connector of its own version when the job is submitted.

    :raises InvalidInput: the variable names a directory without jars, or files that aren't there; or Spark's own
        version is not known, because this Python has no Spark.
    """
    if given := os.environ.get(JARS, ""):
        return ",".join(_given_jars(given)), None
    if found := _jars_in(FETCHED):
        return ",".join(found), None
    try:
        return None, f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{version('pyspark')}"
    except PackageNotFoundError:
        raise InvalidInput(
            "Spark's Kafka connector",
            found="no package pyspark in this Python",
            expected="Spark where tasks run and where `verify` is called",
            remedy=f"Run `pip install 'kafka_rescale[spark]'` there, or name the connector's jars in {JARS}.",
        ) from None


def require_spark_files(java_class: str | None = None) -> str:
    """Check the files that every submission needs; return a hint for a person, if there is one.

    :param java_class: the class that gives tokens to Spark's Kafka source, if the connection has such a class.
    :raises InvalidInput: a job's file or a named jar isn't there.
    """
    job = job_file("restore")
    if not job.is_file():
        raise InvalidInput(
            f"Spark job {job}",
            found="no such file",
            expected="the directory spark_jobs/ of this project",
            remedy=f"Put spark_jobs/ beside plugins/, or name its directory in {JOBS}, where tasks run.",
        )
    jars, packages = connector()
    if jars:
        return _lacking(java_class, jars.split(",")) if java_class else ""
    return (
        f"Spark will fetch {packages} from Maven Central for every job. None can run where that is out of reach. "
        f"There, name a directory with these jars in {JARS} (`make setup` makes one: jvm/target/connector)."
    )


def _lacking(java_class: str, jars: list[str]) -> str:
    entry = f"{java_class.replace('.', '/')}.class"
    # What Spark fetches from elsewhere can't be looked into from here.
    if any(not is_zipfile(jar) or entry in ZipFile(jar).namelist() for jar in jars):
        return ""
    return (
        f"`verify` logs in by the Java class {java_class}, which no jar of Spark's Kafka connector has: put its "
        f"jar beside them, in the directory that {JARS} names, or name it in `spark_conf` (spark.jars.packages)."
    )


def _given_jars(given: str) -> list[str]:
    directory = Path(given)
    named = _jars_in(directory) if directory.is_dir() else given.split(",")
    missing = [each for each in named if ":" not in each and not Path(each).is_file()]
    if missing or not named:
        raise InvalidInput(
            f"environment variable {JARS}",
            found=f"no such file as {', '.join(missing)}" if missing else f"no jar in directory {given}",
            expected="a directory with the jars of Spark's Kafka connector, or their paths, separated by commas",
            remedy="Correct it where tasks run; `make setup` fetches the jars to jvm/target/connector.",
        )
    return named


def _jars_in(directory: Path) -> list[str]:
    return sorted(map(str, directory.glob("*.jar")))
