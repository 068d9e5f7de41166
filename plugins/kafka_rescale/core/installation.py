"""The place of files that are not imported: inside an installed wheel, or in a checkout."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
SHIPPED = PACKAGE / "shipped"
"""Only a wheel has this directory. It holds these files under their paths in a checkout."""

SPARK_JOBS = "spark_jobs"
CONNECTOR = "jvm/target/connector"
GATE_JAR = "jvm/target/gate/kafka-rescale-gate.jar"
DAG_FILE = "examples/kafka_rescale_dags.py"


def own_file(path: str) -> Path:
    """Return the path of a file or directory of this project. Some exist only after `make setup`.

    :param path: its path in a checkout.
    """
    return (SHIPPED if SHIPPED.is_dir() else PACKAGE.parents[1]) / path


def users_directory() -> Path:
    """Return the directory that has the user's ``applications/``.

    In a checkout, this is the directory that has ``plugins/`` too. An installed package has nothing of the user's
    beside it. There, it is Airflow's home.
    """
    if not SHIPPED.is_dir():
        return PACKAGE.parents[1]
    return Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
