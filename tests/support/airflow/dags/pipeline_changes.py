"""Airflow DAGs of the system tests: the operators for threads and processors, as a user's own DAGs use them."""

from __future__ import annotations

from airflow.sdk import DAG, Param
from kafka_rescale.airflow.operators.processors import ExpandProcessorsOperator
from kafka_rescale.airflow.operators.stream_threads import AddStreamThreadOperator, RemoveStreamThreadOperator
from kafka_rescale.operations.application.load import application_files, load_pipeline_application

SECONDS = 600.0

for file in application_files("spark"):
    name = load_pipeline_application(file).application_id
    with DAG(dag_id=f"add_thread_{name}", schedule=None) as adding:
        AddStreamThreadOperator(
            task_id="change", application_file=str(file), client="west", timeout_seconds=SECONDS
        )
    with DAG(dag_id=f"remove_thread_{name}", schedule=None) as removing:
        RemoveStreamThreadOperator(
            task_id="change", application_file=str(file), client="west", timeout_seconds=SECONDS
        )
    with DAG(dag_id=f"remove_thread_soon_{name}", schedule=None) as removing_soon:
        RemoveStreamThreadOperator(
            task_id="change", application_file=str(file), client="west", timeout_seconds=1.0
        )
    with DAG(dag_id=f"expand_processors_{name}", schedule=None, params={"to": Param(1)}) as expanding:
        ExpandProcessorsOperator(task_id="change", application_file=str(file), processors="{{ params.to }}")
    globals().update({dag.dag_id: dag for dag in (adding, removing, removing_soon, expanding)})
