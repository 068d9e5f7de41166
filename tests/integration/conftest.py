"""What integration tests share: one real broker, and unique names for each test."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from testbed.broker import EmbeddedBroker
from tests.integration.spark_job_helpers import LOCAL
from tests.support.airflow.spark_cluster import spark_cluster
from tests.support.verify.spark_of_tests import session_of_tests

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL_DISK = 128 * 2**20


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
    """A short name that only this test uses, for topics, groups and applications on the shared broker."""
    return f"t{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session with the Kafka connector. Its Python workers find the package."""
    session = session_of_tests()
    yield session
    session.stop()


@pytest.fixture
def master(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The master of Spark: tasks run beside the driver, or on standalone workers with these numbers of cores."""
    if not request.param:
        yield LOCAL
        return
    with spark_cluster(tmp_path / "cluster", *request.param) as url:
        yield url


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory on a file system of its own, of ``SMALL_DISK`` bytes."""
    directory = tmp_path / "small"
    directory.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "none", str(directory)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"only root may mount a small file system: {mounted.stderr.decode().strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)
