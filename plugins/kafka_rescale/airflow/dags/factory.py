"""The DAGs of all application files; one that can't be used has a DAG that says why."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.sdk import DAG

from kafka_rescale.airflow.notifications import attach
from kafka_rescale.airflow.operators.invalid import InvalidApplicationOperator
from kafka_rescale.core.application.runtimes import SPARK
from kafka_rescale.core.application.streams import Application

DAG_ID_LENGTH = 250
START = datetime(2025, 1, 1, tzinfo=UTC)
"""Only a scheduled DAG looks at it; a fixed one, so that parsing gives the same DAG each time."""


def build_dags(
    build: Callable[[Any, Path], DAG | None], kind: str, runtime: str = "kafka-streams"
) -> dict[str, DAG]:
    """Return the DAGs of all application files by id.

    Every task parses this file again, so one file that can't be used must not break the others' runs: it has a
    DAG that says what is wrong with it, see ``invalid_dag``. DAGs that were begun before the mistake was found are
    never seen: none registers itself.

    :param build: makes one application's DAG, or None if it needs none of this kind.
    :param kind: first part of the DAG ids.
    :param runtime: of the applications that have such a DAG.
    """
    from kafka_rescale.operations.application import load

    load_file = load.load_pipeline_application if runtime == SPARK else load.load_application
    dags: dict[str, DAG] = {}
    dag: DAG | None
    files = load.application_files(runtime)
    by_name = load.files_by_name(files)
    for file in files:
        try:
            application = load_file(file)
            load.refuse_namesakes(application.application_id, by_name.get(application.application_id, ()))
            dag = build(application, file)
            if dag is not None:
                if isinstance(application, Application):
                    attach(dag, application)
                dag.validate()  # Airflow does so for a whole file of DAGs, and takes all of them away for one.
        except Exception as error:
            dag = invalid_dag(f"{kind}_{file.stem}", file, str(error))
        if dag is not None:
            dags[dag.dag_id] = dag
    return dags


def invalid_dag(stands_for: str, file: Path, error: str) -> DAG:
    """Return a DAG that shows why an application file can't be used.

    Its id is never that of the DAG that the file had before: a run at work would be given its one task for all of
    its own, which Airflow then takes for removed and kills, a cutover among them. A DAG that is only missing for a
    while is waited for.
    """
    doc = f"`{file}` can't be used, so that there is no `{stands_for}`:\n\n{error}"
    dag_id = re.sub(r"[^\w.-]", "_", f"invalid_{stands_for}", flags=re.ASCII)[:DAG_ID_LENGTH]
    with DAG(dag_id=dag_id, auto_register=False, schedule=None, doc_md=doc) as dag:
        dag.tags = {"kafka-rescale", "invalid"}
        InvalidApplicationOperator(task_id="invalid", application_file=str(file), error=error)
    return dag
