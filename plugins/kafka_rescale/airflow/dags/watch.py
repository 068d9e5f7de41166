"""``watch_<application>``: KIP-878's autoscaling, on a schedule."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG

from kafka_rescale.airflow.dags.factory import START
from kafka_rescale.airflow.operators.watch import WatchOperator
from kafka_rescale.airflow.retries import DEFAULT_ARGS
from kafka_rescale.core.application.streams import Application, Mode

EVERY = timedelta(minutes=2)
"""Kafka Streams was to notice a growth within ``metadata.max.age.ms``, five minutes by default."""

EVERY_IF_OFF = timedelta(minutes=10)
"""Where autoscaling is off it only says what has grown: a look is cheap, and need not be as soon."""

DOC = """
Compares the partition counts of the inputs of `{application_id}` with those of its internal topics.

With `partition.autoscaling.enabled` (here: {enabled}) an input that has grown has the expansion triggered, within
`autoscaling_bounds`; a failed one is triggered again, until nothing has succeeded for
`partition.autoscaling.timeout.ms` since the first failure. Without it, `watch` fails once, and says what to do.
Most runs end at `watch`, with what they have found in its log.
"""


def watch_dag(application: Application, file: Path) -> DAG | None:
    """Return the watch of one application, or None if it grows in place: what has grown before it is refused."""
    if application.mode is Mode.IN_PLACE:
        return None
    name, enabled = application.application_id, application.autoscaling_enabled
    with DAG(
        dag_id=f"watch_{name}",
        auto_register=False,
        schedule=EVERY if enabled else EVERY_IF_OFF,
        start_date=START,
        catchup=False,
        max_active_runs=1,
        # Off or on: a growth is told by default (KIP-878), and Airflow asks for this only when it first sees the
        # DAG. Paused then, it would stay paused when autoscaling is declared later.
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
        # Decided and remembered by `watch`: whoever triggers a second time finds that run, and is skipped.
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
