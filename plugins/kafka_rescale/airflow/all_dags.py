"""The DAGs of every kind together, for the one DAG file of an Airflow that has this package installed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from airflow.sdk import DAG, get_parsing_context

from kafka_rescale.airflow.dags.bridge import bridge_dag
from kafka_rescale.airflow.dags.chain import chain_dags
from kafka_rescale.airflow.dags.expansion import expansion_dag
from kafka_rescale.airflow.dags.factory import build_dags, invalid_dag
from kafka_rescale.airflow.dags.keep_warm import keep_warm_dag
from kafka_rescale.airflow.dags.maintenance import accept_dag, pace_dag, retire_dag, roll_back_dag, switch_dag
from kafka_rescale.airflow.dags.process import process_dag
from kafka_rescale.airflow.dags.snapshot import snapshot_dag
from kafka_rescale.airflow.dags.watch import watch_dag
from kafka_rescale.core.application.runtimes import SPARK
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.operations.application.load import files_directory

log = logging.getLogger(__name__)

KINDS: dict[str, Callable[[], dict[str, DAG]]] = {
    "expand": partial(build_dags, expansion_dag, "expand"),
    "expand_chain": chain_dags,
    "rollback": partial(build_dags, roll_back_dag, "rollback"),
    "switch": partial(build_dags, switch_dag, "switch"),
    "pace": partial(build_dags, pace_dag, "pace"),
    "accept": partial(build_dags, accept_dag, "accept"),
    "retire": partial(build_dags, retire_dag, "retire"),
    "bridge": partial(build_dags, bridge_dag, "bridge"),
    "watch": partial(build_dags, watch_dag, "watch"),
    "snapshot": partial(build_dags, snapshot_dag, "snapshot"),
    "process": partial(build_dags, process_dag, "process", runtime=SPARK),
    "keep_warm": partial(build_dags, keep_warm_dag, "keep_warm", runtime=SPARK),
}
"""The function that makes the DAGs of each kind, by the beginning of their ids. Each file of ``dags/`` has one."""


def all_dags() -> dict[str, DAG]:
    """Return the DAGs of all application files by id.

    Before a task begins, Airflow parses its DAG file once more. That also happens during a pause of the
    application. To keep it short, such a parse makes only the DAGs of the task's own kind and application.

    A kind that can't be made gets a DAG that says why, so that the runs of the other kinds go on.

    :raises InvalidInput: there is no directory of application files. Airflow shows it as an import error.
    """
    running = get_parsing_context().dag_id
    kinds = [kind for kind in KINDS if running is None or _is_of(running, kind)]
    return {dag_id: dag for kind in kinds for dag_id, dag in _made(kind).items()}


def _made(kind: str) -> dict[str, DAG]:
    try:
        return KINDS[kind]()
    except InvalidInput:
        raise
    except Exception as error:
        log.exception("The DAGs `%s_…` could not be made", kind)
        dag = invalid_dag(f"{kind}_…", files_directory(), str(error))
        return {dag.dag_id: dag}


def _is_of(dag_id: str, kind: str) -> bool:
    return dag_id.removeprefix("invalid_").startswith(f"{kind}_")
