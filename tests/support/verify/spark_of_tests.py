"""The Spark session of a test process, and the proof of an expansion's copies in it."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import kafka_rescale
from kafka_rescale.operations.verify.prove import prove
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job
from kafka_rescale.spark.jobs.session import READING

from testbed.expansion import Expansion
from testbed.jars import ensure_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def prove_here(expansion: Expansion) -> None:
    """Prove the copies of an expansion in this process. Its session starts once.

    A job would start a driver each time.
    """
    session_of_tests()
    expansion.attempt += 1
    arguments = Arguments(expansion.application.application_id, expansion.owner, expansion.attempt)
    prove(Job("prove", arguments, expansion.connection))
