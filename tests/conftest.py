"""What every test shares: Airflow, where imported, looks at this repository and at a directory of its own."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from testbed.archives.spark_archive import spark_environment
from tests.support.house.dead_workers import DeadWorkers

# The machine is shared: how long one example takes says nothing.
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")

ROOT = Path(__file__).resolve().parents[1]

# Before the first import of airflow, which reads them once and writes its configuration into AIRFLOW_HOME.
# A worker of several has a directory within that of the process that started it, which cleans up.
WORKER = os.environ.get("PYTEST_XDIST_WORKER")
if WORKER:
    os.environ["AIRFLOW_HOME"] = str(Path(os.environ["AIRFLOW_HOME"]) / WORKER)
else:
    os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="kafka-rescale-airflow-")
    atexit.register(shutil.rmtree, os.environ["AIRFLOW_HOME"], ignore_errors=True)
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
os.environ["AIRFLOW__CORE__DAGS_FOLDER"] = str(ROOT / "dags")
os.environ["AIRFLOW__CORE__PLUGINS_FOLDER"] = str(ROOT / "plugins")

# Short JVMs by the hundred: compiling for a long life and loading the same classes is most of their work.
if not WORKER:
    # Without the optimising compiler there are 48 MB for compiled code, which a Spark session sweeps all the time.
    short_lived = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m -XX:+UseSerialGC -Xshare:auto"
    os.environ["JAVA_TOOL_OPTIONS"] = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {short_lived}".strip()
    os.environ.update(spark_environment())
    # Jobs of seconds on a few thousand rows: no page to look at, and no 200 tasks behind each shuffle.
    small = "-Dspark.ui.enabled=false -Dspark.sql.shuffle.partitions=2"
    os.environ["SPARK_SUBMIT_OPTS"] = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {small}".strip()


def pytest_configure(config: pytest.Config) -> None:
    """Let reruns hold for tests whose worker dies, too."""
    if not WORKER and (times := config.getoption("reruns", None)):
        config.pluginmanager.register(DeadWorkers(int(times)))
