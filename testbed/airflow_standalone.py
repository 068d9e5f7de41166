"""A real ``airflow standalone`` on a fresh directory, for system tests, demo and benchmarks."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from testbed.airflow_client import AirflowClient
from testbed.airflow_settings import AirflowPorts, airflow_environment
from testbed.kept_process import KeptProcess
from testbed.processes import wait_until
from testbed.sessions import end_session, kill_session_with_parent, session_members

START_TIMEOUT_SECONDS = 480
STOP_TIMEOUT_SECONDS = 20
REPOSITORY = Path(__file__).resolve().parents[1]
LOCAL_SETTINGS = Path(__file__).with_name("airflow_local_settings.py")


class AirflowError(RuntimeError):
    """Airflow did not start."""


class AirflowStandalone:
    """One Airflow: API server, scheduler with LocalExecutor, DAG processor and triggerer over SQLite.

    :param directory: ``AIRFLOW_HOME``, made if missing, kept by ``stop()``: database, ``logs/``, ``airflow.log``
    :param dags: directory of the DAGs; by default this repository's
    :param plugins: directory of the plugins; by default this repository's
    :param connections: connections by id, such as ``{"conn_type": "spark", "host": "local[2]"}``
    :param env: variables that every part, task and Spark job gets; they may be ``AIRFLOW__…`` settings
    :param port: port of the UI and API on 127.0.0.1; a free port if omitted
    :param detached: whether this Airflow outlives this process; otherwise it dies with the process
    """

    def __init__(
        self,
        directory: Path | str,
        *,
        dags: Path | str = REPOSITORY / "dags",
        plugins: Path | str = REPOSITORY / "plugins",
        connections: Mapping[str, Mapping[str, object]] | None = None,
        env: Mapping[str, str] | None = None,
        port: int | None = None,
        detached: bool = False,
    ) -> None:
        self.directory = Path(directory).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self._kept = KeptProcess(self.directory, "airflow", None if detached else kill_session_with_parent)
        self.ports = AirflowPorts.free(port)
        self.environment = airflow_environment(
            self.directory,
            self.ports,
            dags=Path(dags).resolve(),
            plugins=Path(plugins).resolve(),
            connections=connections or {},
        ) | dict(env or {})
        self.client = AirflowClient(self.url, self.log_file)
        self._detached = detached

    @property
    def url(self) -> str:
        """Address of the UI and of the REST API."""
        return f"http://127.0.0.1:{self.ports.api}"

    @property
    def log_file(self) -> Path:
        """The file with everything that the parts print."""
        return self.directory / "airflow.log"

    @property
    def pids(self) -> list[int]:
        """Ids of the running parts, tasks and Spark drivers, even if another process started them here."""
        pid = self._kept.recorded_pid
        return [] if pid is None else session_members(pid)

    def start(self) -> AirflowStandalone:
        """Start all parts, and return when each says that it is healthy."""
        if self.pids:
            raise AirflowError(f"an Airflow runs already on {self.directory} ({self.pids}): stop it first")
        configured = self.directory / "config"
        configured.mkdir(exist_ok=True)
        shutil.copy(LOCAL_SETTINGS, configured)
        command = [sys.executable, "-m", "airflow", "standalone"]
        self._kept.start(command, cwd=self.directory, env=self.environment)
        try:
            wait_until(self._is_ready, timeout=START_TIMEOUT_SECONDS, what=f"a healthy Airflow at {self.url}")
        except (TimeoutError, AirflowError) as error:
            self.stop()
            raise AirflowError(f"{error}\n{self._kept.log_tail(4000)}") from error
        return self

    def stop(self) -> None:
        """End every process of this Airflow, and wait until all are gone. If no process runs, do nothing."""
        if self.pids and (pid := self._kept.recorded_pid) is not None:
            end_session(pid, timeout=STOP_TIMEOUT_SECONDS)
        self._kept.forget()

    def __enter__(self) -> AirflowStandalone:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._detached:
            self.stop()

    def _is_ready(self) -> bool:
        if self._kept.has_ended:
            raise AirflowError("`airflow standalone` ended while starting")
        return self.client.is_healthy()
