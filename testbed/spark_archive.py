"""Spark's classes in an archive that the JVM maps, for machines on which many short jobs are submitted.

Half of what a small job costs is loading and verifying the same 15,000 classes; two cores feel that. Class data
sharing (JEP 350) keeps them parsed in a file. The archive belongs to one JVM and one class path; a JVM that finds
another one ignores it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from testbed.jars import TARGET_DIRECTORY, build_lock, require_java

log = logging.getLogger(__name__)

ARCHIVES = TARGET_DIRECTORY / "spark"
TRAINING = Path(__file__).with_name("spark_training.py")
TRAINING_SECONDS = 300.0
SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
"""The JVM would say on stdout that it ignores an archive, or could not take a class into it."""


def spark_environment() -> dict[str, str]:
    """Return the environment with which ``spark-submit`` starts quickly; none if there is no archive."""
    archive = _path()
    if not archive.is_file():
        return {}
    given = os.environ.get("SPARK_SUBMIT_OPTS", "")
    if "SharedArchiveFile" in given:
        return {}
    return {"SPARK_SUBMIT_OPTS": f"{given} -Xshare:auto -XX:SharedArchiveFile={archive} {SILENT}".strip()}


def ensure_spark_archive() -> Path | None:
    """Run a small job once and archive the classes that it has loaded; returns the archive.

    :returns: None if this JVM can't, which costs time and nothing else.
    """
    archive = _path()
    with build_lock():
        if archive.is_file():
            return archive
        ARCHIVES.mkdir(parents=True, exist_ok=True)
        for outdated in ARCHIVES.glob("*.jsa"):
            outdated.unlink()
        made = archive.with_suffix(".new")
        failure = _train(made)
        if failure or not made.is_file():
            log.warning("Spark's classes can't be archived, jobs start more slowly: %s", failure or "no archive")
            return None
        return made.replace(archive)


def _path() -> Path:
    """Return the archive of this Java and this Spark, at this place."""
    java = Path(require_java()).resolve()
    parts = (java, java.stat().st_mtime_ns, version("pyspark"), sys.prefix)
    return ARCHIVES / f"{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.jsa"


def _train(archive: Path) -> str:
    # Not a name with %p: the launcher, a JVM of its own, isn't given these options.
    options = f"-XX:ArchiveClassesAtExit={archive} {SILENT}"
    programs = Path(sys.executable).parent
    submit = [str(programs / "spark-submit"), "--master", "local[2]"]
    # spark-submit asks the first python3 where Spark is.
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
    quiet = ["--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2"]
    try:
        done = subprocess.run(
            [*submit, *quiet, str(TRAINING)],
            env={**os.environ, "PATH": path, "SPARK_SUBMIT_OPTS": options},
            capture_output=True,
            text=True,
            timeout=TRAINING_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stderr[-1000:] if done.returncode else ""


if __name__ == "__main__":  # `python -m testbed.spark_archive` prepares a machine beforehand
    print(ensure_spark_archive() or "")
