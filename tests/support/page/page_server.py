"""The page as Airflow mounts it: with Airflow's authentication, but without the rest of Airflow."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from airflow.api_fastapi.app import init_auth_manager, purge_cached_app
from airflow.settings import engine
from fastapi import FastAPI
from kafka_rescale.airflow.page_path import PREFIX
from kafka_rescale.web.app import Source, create_app

from testbed.processes import free_ports, wait_until

COOKIE = "_token"
SETTINGS = {
    "AIRFLOW__CORE__AUTH_MANAGER": "tests.support.airflow.per_dag_auth.PerDagAuthManager",
    "AIRFLOW__API_AUTH__JWT_SECRET": "of a test, and long enough for its algorithm to be content with it",
}


def mounted(source: Source) -> FastAPI:
    """Return the page below its prefix, and Airflow's auth manager with its tables.

    ``SETTINGS`` must be in the environment.
    """
    prepared_database()
    root = FastAPI()
    root.mount(PREFIX, create_app(source))
    init_auth_manager(root)
    return root


def prepared_database() -> None:
    """Create the tables in the database of ``AIRFLOW_HOME``, and forget the auth manager of an earlier test."""
    from airflow.models import import_all_models
    from airflow.models.base import Base

    assert engine is not None
    import_all_models()
    Base.metadata.create_all(engine)
    purge_cached_app()


@contextmanager
def served(application: Any) -> Iterator[str]:
    """Serve an ASGI application on a free port of this machine, and give its address."""
    (port,) = free_ports(1)
    server = uvicorn.Server(uvicorn.Config(application, host="127.0.0.1", port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started, timeout=60, what="a server")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(timeout=30)
