"""Spark's classes in an archive, for machines on which many short jobs are submitted."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from testbed.archives.class_archive import archive_in, make_archive, using
from testbed.jars import TARGET_DIRECTORY

ARCHIVES = TARGET_DIRECTORY / "spark"
TRAINING = Path(__file__).with_name("spark_training.py")
TRAINING_SECONDS = 300.0


def spark_environment() -> dict[str, str]:
    """Return the environment with which ``spark-submit`` starts quickly; empty if there is no archive."""
    given, options = os.environ.get("SPARK_SUBMIT_OPTS", ""), using(_path())
    if not options or "SharedArchiveFile" in given:
        return {}
    return {"SPARK_SUBMIT_OPTS": " ".join([given, *options]).strip()}


def ensure_spark_archive() -> Path | None:
    """Run a small job once, archive the classes that it has loaded, and return the archive.

    :returns: None if this JVM can't make an archive. Jobs then only start more slowly.
    """
    return make_archive(_path(), _train, lack="Spark's classes can't be archived, jobs start more slowly")


def _path() -> Path:
    """Return the path of the archive for this installation of Spark."""
    return archive_in(ARCHIVES, version("pyspark"), sys.prefix)


def _train(options: tuple[str, ...]) -> str:
    # The archive's name needs no %p, because the launcher, a JVM of its own, doesn't get these options.
    programs = Path(sys.executable).parent
    submit = [str(programs / "spark-submit"), "--master", "local[2]"]
    # spark-submit asks the first python3 where Spark is.
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
    quiet = ["--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2"]
    try:
        done = subprocess.run(
            [*submit, *quiet, str(TRAINING)],
            env={**os.environ, "PATH": path, "SPARK_SUBMIT_OPTS": " ".join(options)},
            capture_output=True,
            text=True,
            timeout=TRAINING_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stderr[-1000:] if done.returncode else ""


if __name__ == "__main__":  # `python -m testbed.archives.spark_archive` prepares a machine beforehand
    print(ensure_spark_archive() or "")
