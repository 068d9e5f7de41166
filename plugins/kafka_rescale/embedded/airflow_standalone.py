"""A real ``airflow standalone`` on a fresh directory, for system tests, demo and benchmarks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from kafka_rescale.embedded.airflow_client import AirflowClient
from kafka_rescale.embedded.airflow_settings import AirflowPorts, airflow_environment
from kafka_rescale.embedded.processes import wait_until
from kafka_rescale.embedded.sessions import end_session, kill_session_with_parent, session_members

START_TIMEOUT_SECONDS = 480
STOP_TIMEOUT_SECONDS = 20
REPOSITORY = Path(__file__).resolve().parents[3]


class AirflowError(RuntimeError):
    """Airflow did not start."""


class AirflowStandalone:
    """One Airflow: API server, scheduler with LocalExecutor, DAG processor and triggerer over SQLite.

    :param directory: ``AIRFLOW_HOME``, made if missing, kept by ``stop()``: database, ``logs/``, ``airflow.log``
    :param dags: directory of the DAGs; those of this repository by default
    :param plugins: directory of the plugins; those of this repository by default
    :param connections: connection id to the connection, e.g. ``{"conn_type": "spark", "host": "local[2]"}``
    :param env: variables that every part, task and Spark job gets, ``AIRFLOW__…`` settings among them
    :param port: port of the UI and API on 127.0.0.1; a free one if omitted
    :param detached: it outlives this process; otherwise it dies with it
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
        self.log_file = self.directory / "airflow.log"
        self.ports = AirflowPorts.free(port)
        self.environment = airflow_environment(
            self.directory,
            self.ports,
            dags=Path(dags).resolve(),
            plugins=Path(plugins).resolve(),
            connections=connections or {},
        ) | dict(env or {})
        self.client = AirflowClient(self.url)
        self._pid_file = self.directory / "airflow.pid"
        self._detached = detached
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Address of the UI and of the REST API."""
        return f"http://127.0.0.1:{self.ports.api}"

    @property
    def pids(self) -> list[int]:
        """Ids of the running parts, tasks and Spark drivers, also of those that another process started here."""
        try:
            return session_members(int(self._pid_file.read_text()))
        except (FileNotFoundError, ValueError):
            return []

    def start(self) -> AirflowStandalone:
        """Start all parts, return when each says that it is healthy."""
        if self.pids:
            raise AirflowError(f"an Airflow runs already on {self.directory} ({self.pids}): stop it first")
        command = [sys.executable, "-m", "airflow", "standalone"]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._pid_file.write_text(str(self._process.pid))
        if not self._detached:
            self._watchdog = kill_session_with_parent(self._process.pid)
        try:
            wait_until(self._is_ready, timeout=START_TIMEOUT_SECONDS, what=f"a healthy Airflow at {self.url}")
        except (TimeoutError, AirflowError) as error:
            self.stop()
            raise AirflowError(f"{error}\n{self.log_tail()}") from error
        return self

    def stop(self) -> None:
        """End every process of this Airflow and wait until all are gone; nothing if none runs."""
        if self.pids:
            end_session(int(self._pid_file.read_text()), timeout=STOP_TIMEOUT_SECONDS)
        for process in (self._process, self._watchdog):
            if process is not None:
                process.kill()
                process.wait()
                if process.stdin is not None:
                    process.stdin.close()
        self._process = self._watchdog = None
        self._pid_file.unlink(missing_ok=True)

    def __enter__(self) -> AirflowStandalone:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._detached:
            self.stop()

    def log_tail(self, characters: int = 4000) -> str:
        """Return the end of what the parts have written."""
        return self.log_file.read_text(errors="replace")[-characters:]

    def _is_ready(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise AirflowError("`airflow standalone` ended while starting")
        return self.client.is_healthy()
