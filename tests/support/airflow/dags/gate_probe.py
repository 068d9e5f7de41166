"""An Airflow DAG of the system tests: begin an expansion, wait at its gate, ask for approval, end.

It uses no Spark and does no cutover.
"""

from __future__ import annotations

from airflow.sdk import DAG, chain
from kafka_rescale.airflow.dags.expansion_tasks import ExpansionTasks
from kafka_rescale.airflow.dags.params import expansion_params
from kafka_rescale.airflow.operators.closing import RollBackOperator
from kafka_rescale.airflow.retries import DEFAULT_ARGS
from kafka_rescale.airflow.sensors.lag_gate import LagGateSensor
from kafka_rescale.operations.application.load import application_files, load_application, topology_of

TAKEN = ("preflight", "plan", "approve_cutover", "await_window")

for file in application_files():
    application = load_application(file)
    make = ExpansionTasks(application, str(file), topology_of(application))
    with DAG(
        dag_id=f"gate_probe_{application.application_id}",
        schedule=None,
        params=expansion_params(application),
        default_args=DEFAULT_ARGS,
    ) as dag:
        gate = LagGateSensor(
            task_id="gate_all",
            application_id=application.application_id,
            kafka_config_id=application.kafka_conn_id,
            acceptable_lag=0,
        )
        end = RollBackOperator(task_id="end", application_file=str(file), reason="done")
        check, plan, ask, wait = (make.operator(task) for task in make.tasks() if task.task_id in TAKEN)
        chain(check, plan, gate, ask, wait, end)
    globals()[dag.dag_id] = dag
