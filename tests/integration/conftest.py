"""What integration tests share: one real broker, and names that no other test uses."""

from __future__ import annotations

import logging
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import kafka_rescale
import pytest

from testbed.broker import EmbeddedBroker
from testbed.jars import ensure_jars
from tests.integration.spark_job_helpers import LOCAL
from tests.support.airflow.spark_cluster import spark_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A running broker. Tests that stop or kill a broker start one of their own."""
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), heap="768m") as running:
        yield running


@pytest.fixture(scope="session")
def client(broker: EmbeddedBroker) -> dict[str, str]:
    """librdkafka properties that connect to ``broker``."""
    return broker.client_config()


@pytest.fixture
def unique() -> str:
    """A short name of this test alone, for topics, groups and applications on the shared broker."""
    return f"t{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session with the Kafka connector; its Python workers find the package."""
    from pyspark.sql import SparkSession

    jars = ",".join(str(jar) for jar in sorted(ensure_jars("connector").glob("*.jar")))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    package = Path(kafka_rescale.__file__).resolve().parents[1]
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        # Dozens of queries, each once and of some rows: to compile code for them takes longer than to run them.
        # Jobs by spark-submit show the compiled code.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.executorEnv.PYTHONPATH", str(package))
        .getOrCreate()
    )
    # Py4J says goodbye when the interpreter ends: after pytest has closed what it logs to.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    yield session
    session.stop()


@pytest.fixture
def master(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where Spark runs its tasks: beside the driver, or on standalone workers with these numbers of cores."""
    if not request.param:
        yield LOCAL
        return
    with spark_cluster(tmp_path / "cluster", *request.param) as url:
        yield url
