"""``watch_<application>``: the autoscaling of KIP-878, on a schedule."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG

from kafka_rescale.airflow.dags.factory import START
from kafka_rescale.airflow.operators.watch import WatchOperator
from kafka_rescale.airflow.retries import DEFAULT_ARGS
from kafka_rescale.core.application.streams import Application

EVERY = timedelta(minutes=2)
"""In KIP-878, Kafka Streams notices a growth within ``metadata.max.age.ms``: five minutes by default."""

EVERY_IF_OFF = timedelta(minutes=10)
"""With autoscaling off, the watch only reports what has grown. That is not as urgent."""

DOC = """
Compares the partition counts of the inputs of `{application_id}` with those of its internal topics.

With `partition.autoscaling.enabled` (here: {enabled}), `watch` triggers an expansion when an input has grown,
within `autoscaling_bounds`. It triggers a failed expansion again. It gives up when no expansion has succeeded
within `partition.autoscaling.timeout.ms` after the first failure. Without autoscaling, `watch` fails once, and
says what to do. With `mode: in_place` it is always off, because that mode refuses inputs that were grown by hand.
Most runs end at `watch`. Its log says what it has found.
"""


def watch_dag(application: Application, file: Path) -> DAG:
    """Return the watch DAG of one application. In place it only reports, because autoscaling can't be declared."""
    name, enabled = application.application_id, application.autoscaling_enabled
    with DAG(
        dag_id=f"watch_{name}",
        auto_register=False,
        schedule=EVERY if enabled else EVERY_IF_OFF,
        start_date=START,
        catchup=False,
        max_active_runs=1,
        # The watch runs even with autoscaling off, because KIP-878 reports a growth by default. Airflow reads this
        # value only when it first sees the DAG: a DAG that was paused then would stay paused when autoscaling is
        # declared.
        is_paused_upon_creation=False,
        default_args=DEFAULT_ARGS,
        render_template_as_native_obj=True,
        doc_md=DOC.format(application_id=name, enabled=str(enabled).lower()),
        tags=["kafka-rescale", "watch", *application.tags],
    ) as dag:
        WatchOperator(task_id="watch", application_file=str(file)) >> _expansion(name)
    return dag


def _expansion(name: str) -> TriggerDagRunOperator:
    def found(key: str) -> str:
        return f"{{{{ ti.xcom_pull(task_ids='watch')['{key}'] }}}}"

    return TriggerDagRunOperator(
        task_id="expand",
        trigger_dag_id=f"expand_{name}",
        # `watch` has chosen and stored this id. A second trigger finds the run that has it, and skips this task.
        trigger_run_id=found("run_id"),
        skip_when_already_exists=True,
        conf={
            "target": found("target"),
            "dry_run": False,
            "approve_plan": found("approval"),
            "approve_cutover": found("approval"),
        },
        fail_when_dag_is_paused=True,
    )
