"""Another API server of a running Airflow, whose users may see different DAGs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.airflow_client import AirflowClient
from testbed.airflow_standalone import START_TIMEOUT_SECONDS, STOP_TIMEOUT_SECONDS, AirflowStandalone
from testbed.kept_process import KeptProcess
from testbed.processes import free_ports, wait_until
from testbed.sessions import end_session, kill_session_with_parent
from tests.support.airflow.per_dag_auth import ADMIN, token_of
from tests.support.page.page_server import SETTINGS


@contextmanager
def guarded_server(airflow: AirflowStandalone) -> Iterator[AirflowClient]:
    """Start an API server with ``PerDagAuthManager``.

    ``airflow standalone`` can't run it, because it replaces every auth manager by its own.

    :param airflow: started with ``SETTINGS``, so that both accept the same tokens.
    """
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    served = {**SETTINGS, "AIRFLOW__API__PORT": str(port), "AIRFLOW__API__BASE_URL": url}
    server = KeptProcess(airflow.directory, "guarded", kill_session_with_parent)
    command = [sys.executable, "-m", "airflow", "api-server"]
    server.start(command, cwd=airflow.directory, env=airflow.environment | served)
    client = AirflowClient(url, airflow.log_file, token_of(ADMIN))
    try:
        wait_until(client.is_healthy, timeout=START_TIMEOUT_SECONDS, what=f"an API server at {url}")
        yield client
    finally:
        if (pid := server.recorded_pid) is not None:
            end_session(pid, timeout=STOP_TIMEOUT_SECONDS)
        server.forget()
