"""The Spark session of a test process, and the jobs of an expansion in it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import kafka_rescale
from kafka_rescale.operations.verify.prove import prove
from kafka_rescale.operations.verify.verify import verify
from kafka_rescale.spark.copy.move import move
from kafka_rescale.spark.copy.rehearse import rehearse
from kafka_rescale.spark.copy.restore import restore
from kafka_rescale.spark.copy.warm_up import warm_up
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job
from kafka_rescale.spark.jobs.session import READING

from testbed.expansion import Expansion
from testbed.jars import ensure_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BODIES: Mapping[str, Callable[[Job], None]] = {
    "restore": restore,
    "warm_up": warm_up,
    "prove": prove,
    "rehearse": rehearse,
    "move": move,
}


def session_of_tests() -> SparkSession:
    """Return the one session of this process.

    It has the Kafka connector, and its Python workers find the package.
    """
    from pyspark.sql import SparkSession

    jars = ",".join(str(jar) for jar in sorted(ensure_jars("connector").glob("*.jar")))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    package = Path(kafka_rescale.__file__).resolve().parents[1]
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        # The tests run dozens of queries, each once and on few rows. Compiling code for them takes longer than
        # running them. The tests that use spark-submit run the compiled code.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.executorEnv.PYTHONPATH", str(package))
        .config(map=dict(READING))
        .getOrCreate()
    )
    # Py4J logs when the interpreter ends, which is after pytest has closed the log.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    return session


def run_here(expansion: Expansion, name: str, stage: int | None) -> None:
    """Run a job of an expansion to its end in this process. Its session starts once.

    By ``spark-submit``, each job would start a driver, which takes more processor time than what it does for the
    few records of a test. Jobs that go on beside the cutover, and jobs that a test kills, have their own drivers.
    The tests of the jobs and of the DAGs start all of them by ``spark-submit``.
    """
    session, application = session_of_tests(), expansion.application
    if name == "verify":
        verify(lambda: session, expansion.connection, application.application_id, whole=expansion.verifies_whole)
        return
    expansion.attempt += 1
    snapshots = application.snapshots.location if application.snapshots else ""
    arguments = Arguments(
        application.application_id, expansion.owner, expansion.attempt, stage, snapshots=snapshots
    )
    BODIES[name](Job(name, arguments, expansion.connection))
