"""What each part of the test bed's Airflow begins with: a copy of this is in ``config`` of its ``AIRFLOW_HOME``.

Airflow forks a process for every task, and one for every parsing of a DAG file. Each of them would import the same
hundreds of modules, 0.6 s of a core. So the part that forks imports them, once, before its first fork; parts that
never fork import nothing.
"""

from __future__ import annotations

import logging
import os
from importlib import import_module

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


def _import_modules() -> None:
    # Emptied first: an import may fork as well.
    names = tuple(_missing)
    _missing.clear()
    for name in names:
        try:
            import_module(name)
        except Exception:
            # Then the processes that need it import it themselves, and say what is wrong.
            logging.getLogger(__name__).warning("%s is imported by each task", name, exc_info=True)


os.register_at_fork(before=_import_modules)
