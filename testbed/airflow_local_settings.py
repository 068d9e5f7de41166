"""Each part of the test bed's Airflow runs this first, from a copy in ``config`` of its ``AIRFLOW_HOME``.

Airflow forks a process for every task, and for every parsing of a DAG file. Each process would import the same
hundreds of modules, which takes 0.6 s of a core. So a part that forks imports them once, before its first fork.
Parts that never fork import nothing.

The database is a SQLite file. SQLite waits for the disk several times in each transaction, and only one part can
write at a time. This database need not outlive the machine, so no part waits for the disk.

The API server of Airflow 3.3 logs each action in the thread of its event loop. A request that has written commits
only when the loop lets it go on. If the loop waits for the lock of that request, it waits in vain, and so does
every other part. Therefore the loop gives up soon. Then its request fails, and the client sends it again.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
import threading
from importlib import import_module
from typing import Any

from sqlalchemy import Engine, event

__all__: list[str] = []

_OF_TASKS = (
    "airflow.dag_processing.dagbag",
    "airflow.providers.apache.spark.hooks.spark_submit",
    "airflow.sdk.execution_time.task_runner",
    "kafka_rescale.airflow.all_dags",
    "kafka_rescale.operations.cutover.cutover",
    "kafka_rescale.operations.expansion.finish",
    "kafka_rescale.operations.expansion.prewarm",
    "kafka_rescale.operations.expansion.retire",
    "kafka_rescale.operations.preflight.preflight",
    "kafka_rescale.operations.watch",
)
_missing = list(_OF_TASKS)
LOOP_SECONDS = 2
"""How long the event loop of the API server waits for a lock. Others wait as long as the connection says."""


def _import_modules() -> None:
    # Empty the list first, because an import may fork as well.
    names = tuple(_missing)
    _missing.clear()
    for name in names:
        try:
            import_module(name)
        except Exception:
            # The processes that need the module import it themselves then, and say what is wrong.
            logging.getLogger(__name__).warning("%s is imported by each task", name, exc_info=True)


@event.listens_for(Engine, "connect")
def _not_wait_for_the_disk(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous = OFF")
    cursor.close()


def _bound_waits_of_the_loop() -> None:
    """Let connections wait for a lock as long as before, but only shortly while the main thread uses them."""

    @event.listens_for(Engine, "checkout")
    def bound(connection: Any, record: Any, _: object) -> None:
        if not isinstance(connection, sqlite3.Connection):
            return  # an asynchronous connection waits in a thread of its own
        asked = record.info.setdefault("busy_timeout", connection.execute("PRAGMA busy_timeout").fetchone()[0])
        is_loop = threading.current_thread() is threading.main_thread()
        connection.execute(f"PRAGMA busy_timeout = {LOOP_SECONDS * 1000 if is_loop else asked}")


if "api-server" in sys.argv:
    _bound_waits_of_the_loop()
os.register_at_fork(before=_import_modules)
