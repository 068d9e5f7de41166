"""``keep_warm_<application>``: updates the standbys and warm-ups of a pipeline, on a schedule of its own."""

from __future__ import annotations

from pathlib import Path

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG

from kafka_rescale.airflow.dags.factory import START
from kafka_rescale.airflow.operators.keep_warm import KeepWarmOperator, ProbeOperator, StandbysOperator
from kafka_rescale.airflow.retries import DEFAULT_ARGS
from kafka_rescale.airflow.spark.kafka_for_spark import kafka_arguments
from kafka_rescale.airflow.spark.settings import unrendered
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.roles import Role

DOC = """
Keeps the standbys and warm-ups of `{application_id}` close behind its tasks, so that another client can take over
a task without a pause.

`standbys` finds the clients that have something to read. For each of them, one `spark-submit` reads changelogs
into the client's `state.dir`. It writes nothing to Kafka but its result, so it may run beside
`process_{application_id}`. A client whose job of an earlier run is still at work is left out. So a restore of
hours holds up no other client, and no probe.

If a warm-up is in progress and the last rebalance was at least {seconds} s ago, `probe` triggers a run of
`process_{application_id}`, unless the last one that it triggered is queued still. In this run, the tasks whose
warm-up has caught up move to their new clients.
"""


def keep_warm_dag(application: PipelineApplication, file: Path) -> DAG | None:
    """Return the DAG that keeps a pipeline's standbys warm, or None for a pipeline without declared clients.

    It is a DAG of its own, because a long restore must not hold up the next run of the pipeline.
    """
    if not application.clients:
        return None
    name = application.application_id
    seconds = application.probing_rebalance_interval_ms // 1000
    with DAG(
        dag_id=f"keep_warm_{name}",
        auto_register=False,
        schedule=application.keep_warm_schedule,
        start_date=START,
        catchup=False,
        # A run lasts as long as its longest restore. `standbys` leaves out the clients whose jobs are at work. So
        # even if all clients restore, each in a run of its own, one more run looks and probes.
        max_active_runs=len(application.clients) + 1,
        default_args=DEFAULT_ARGS,
        doc_md=DOC.format(application_id=name, seconds=seconds),
        tags=["kafka-rescale", "keep-warm", *application.tags],
    ) as dag:
        standbys = StandbysOperator(task_id="standbys", application_file=str(file))
        KeepWarmOperator.partial(
            task_id="keep_warm",
            application_file=str(file),
            application_id=name,
            **kafka_arguments(application, Role.COPY),
            conn_id=application.spark_conn_id,
            conf=unrendered(application.spark_conf),
        ).expand(client=standbys.output)
        probe = ProbeOperator(task_id="probe", application_file=str(file))
        probe >> TriggerDagRunOperator(
            task_id="rebalance",
            trigger_dag_id=f"process_{name}",
            # A second probe within one interval computes the same run id, finds that run, and skips this task.
            trigger_run_id="{{ ti.xcom_pull(task_ids='probe') }}",
            skip_when_already_exists=True,
        )
    return dag
