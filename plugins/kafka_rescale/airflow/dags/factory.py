"""The DAGs of all application files. A file that can't be used gets a DAG that says why."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, get_parsing_context

from kafka_rescale.airflow.notifications import attach
from kafka_rescale.airflow.operators.invalid import InvalidApplicationOperator
from kafka_rescale.core.application.runtimes import SPARK
from kafka_rescale.core.application.streams import Application

DAG_ID_LENGTH = 250
START = datetime(2025, 1, 1, tzinfo=UTC)
"""The start date of scheduled DAGs. It is fixed, so that each parse makes the same DAG."""


def build_dags(
    build: Callable[[Any, Path], DAG | None], kind: str, runtime: str = "kafka-streams"
) -> dict[str, DAG]:
    """Return the DAGs of all application files by id.

    Every task parses its DAG file again, so one unusable application file must not break the runs of the others.
    Such a file gets a DAG that says what is wrong with it (``invalid_dag``). No DAG registers itself. So Airflow
    never sees a DAG that was only half built when the mistake was found.

    If Airflow parses for a task that is about to begin, only files that mention its application are used: the task
    may have to end a pause.

    :param build: Makes the DAG of one application. It returns None if the application needs no DAG of this kind.
    :param kind: The first part of the DAG ids.
    :param runtime: The runtime of the applications that have such a DAG.
    """
    from kafka_rescale.operations.application import load

    load_file = load.load_pipeline_application if runtime == SPARK else load.load_application
    dags: dict[str, DAG] = {}
    dag: DAG | None
    files = load.application_files(runtime, mentioning=_application_of_task(kind))
    by_name = load.files_by_name(files)
    for file in files:
        try:
            application = load_file(file)
            load.refuse_namesakes(application.application_id, by_name.get(application.application_id, ()))
            dag = build(application, file)
            if dag is not None:
                if isinstance(application, Application):
                    attach(dag, application)
                dag.validate()  # Airflow validates later too, but one bad DAG then costs all DAGs of a file.
        except Exception as error:
            dag = invalid_dag(f"{kind}_{file.stem}", file, str(error))
        if dag is not None:
            dags[dag.dag_id] = dag
    return dags


def _application_of_task(kind: str) -> str:
    """Return the application whose task is about to begin; empty if Airflow asks for all DAGs of a kind."""
    running = get_parsing_context().dag_id or ""
    return running.removeprefix(f"{kind}_") if running.startswith(f"{kind}_") else ""


def invalid_dag(stands_for: str, file: Path, error: str) -> DAG:
    """Return a DAG that shows why an application file can't be used.

    Its id must differ from the id of the real DAG. With the same id, Airflow would think that all tasks of a run
    at work had been removed, and would kill them, even a cutover. If the real DAG is only missing for a while,
    Airflow waits for it.
    """
    doc = f"`{file}` can't be used, so there is no `{stands_for}`:\n\n{error}"
    dag_id = re.sub(r"[^\w.-]", "_", f"invalid_{stands_for}", flags=re.ASCII)[:DAG_ID_LENGTH]
    with DAG(dag_id=dag_id, auto_register=False, schedule=None, doc_md=doc) as dag:
        dag.tags = {"kafka-rescale", "invalid"}
        InvalidApplicationOperator(task_id="invalid", application_file=str(file), error=error)
    return dag
