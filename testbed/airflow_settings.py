"""The environment of an Airflow that runs alone on a small machine."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.archives.spark_archive import spark_environment
from testbed.processes import free_ports

SMALL_MACHINE = {
    "CORE__EXECUTOR": "LocalExecutor",
    "CORE__LOAD_EXAMPLES": "False",
    "CORE__PARALLELISM": "8",
    "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    "API__WORKERS": "1",
    "DAG_PROCESSOR__PARSING_PROCESSES": "1",
    "DAG_PROCESSOR__REFRESH_INTERVAL": "15",
    # Each parsing is a process of its own. Ten files, parsed every 30 s, took a quarter of two cores.
    "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "120",
    "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
    "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    # On a busy machine, a task would die because the API server takes longer than 5 s.
    "WORKERS__EXECUTION_API_TIMEOUT": "60",
    # A worker that was killed is noticed, and its task retried, after this many seconds instead of 300.
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "5",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "LOGGING__LOGGING_LEVEL": "INFO",
    "USAGE_DATA_COLLECTION__ENABLED": "False",
}

LOCKED_DATABASE_SECONDS = 120
"""How long each part waits for another part's transaction.

SQLite's own 5 s are too short for a slow disk. The triggerer and the DAG processor of Airflow 3.3 then end for
good, and every task that has been deferred waits in vain.
"""


@dataclass(frozen=True)
class AirflowPorts:
    """TCP ports of one Airflow on 127.0.0.1."""

    api: int
    worker_logs: int
    trigger_logs: int

    @classmethod
    def free(cls, api: int | None = None) -> AirflowPorts:
        """Return free ports. If ``api`` is given, it is the API's port."""
        free, worker_logs, trigger_logs = free_ports(3)
        return cls(api or free, worker_logs, trigger_logs)


def airflow_environment(
    home: Path,
    ports: AirflowPorts,
    *,
    dags: Path,
    plugins: Path,
    connections: Mapping[str, Mapping[str, object]],
) -> dict[str, str]:
    """Return the environment of every part of one Airflow.

    Settings of an Airflow around this process (a test that imports it, say) are left out.

    :param connections: the connections, by their ids.
    """
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW")}
    settings = SMALL_MACHINE | {
        "CORE__DAGS_FOLDER": str(dags),
        "CORE__PLUGINS_FOLDER": str(plugins),
        "CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{ports.api}/execution/",
        "API__PORT": str(ports.api),
        "API__HOST": "127.0.0.1",
        "API__BASE_URL": f"http://127.0.0.1:{ports.api}",
        "API__SECRET_KEY": secrets.token_hex(16),
        "API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db?timeout={LOCKED_DATABASE_SECONDS}",
        "LOGGING__WORKER_LOG_SERVER_PORT": str(ports.worker_logs),
        "LOGGING__TRIGGER_LOG_SERVER_PORT": str(ports.trigger_logs),
    }
    return (
        inherited
        | spark_environment()
        | {f"AIRFLOW__{key}": value for key, value in settings.items()}
        | {f"AIRFLOW_CONN_{name.upper()}": json.dumps(value) for name, value in connections.items()}
        | {
            "AIRFLOW_HOME": str(home),
            # A process that waits for a line of the log gets it at once.
            "PYTHONUNBUFFERED": "1",
            # Triggers are imported by path, and Spark and Airflow programs are found beside this Python.
            "PYTHONPATH": str(plugins),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        }
    )
