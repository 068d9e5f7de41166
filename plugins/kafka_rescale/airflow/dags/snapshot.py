"""``snapshot_<application>``: writes the state of every store at the end of each day, as Parquet."""

from __future__ import annotations

from datetime import UTC, datetime, time
from pathlib import Path

from airflow.sdk import DAG, CronDataIntervalTimetable

from kafka_rescale.airflow.dags.factory import START
from kafka_rescale.airflow.dags.params import snapshot_params
from kafka_rescale.airflow.fields import require_known_fields
from kafka_rescale.airflow.operators.snapshot import SnapshotOperator
from kafka_rescale.airflow.retries import DEFAULT_ARGS
from kafka_rescale.airflow.spark.kafka_for_spark import kafka_arguments
from kafka_rescale.airflow.spark.settings import unrendered
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.roles import Role

DOC = """
Writes the state that every store of `{application_id}` had at the end of each day (UTC) to `{location}`, as
Parquet.

It only reads Kafka and takes no lease, so it may run beside an expansion. It reads the generation that was at work
at the end of the day, and names it in the result. The snapshot of a day is built from the newest earlier snapshot
and the records since then. A backfill makes missing days: start it in the UI, or with `airflow backfill create
--dag-id snapshot_{application_id} --from-date ... --to-date ...`. If the changelogs no longer contain the exact
state of a day, the run refuses, and names the first day that is exact.
"""


def snapshot_dag(application: Application, file: Path) -> DAG | None:
    """Return the snapshot DAG of one application, or None if its file has no `snapshots:` section."""
    declared = application.snapshots
    if declared is None:
        return None
    name, first = application.application_id, declared.start_date
    with DAG(
        dag_id=f"snapshot_{name}",
        auto_register=False,
        # By default "@daily" is a timetable whose data interval is a single moment.
        schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
        start_date=datetime.combine(first, time(), tzinfo=UTC) if first else START,
        catchup=declared.catchup,
        max_active_runs=1,
        params=snapshot_params(),
        default_args=DEFAULT_ARGS,
        doc_md=DOC.format(application_id=name, location=declared.location),
        tags=["kafka-rescale", "snapshot", *application.tags],
    ) as dag:
        SnapshotOperator(
            task_id="snapshot",
            application_file=str(file),
            application_id=name,
            **kafka_arguments(application, Role.COPY),
            conn_id=application.spark_conn_id,
            conf=unrendered(application.spark_conf),
            start=_moment("data_interval_start"),
            end=_moment("data_interval_end"),
            from_scratch="{{ params.from_scratch }}",
            pre_execute=require_known_fields,
        )
    return dag


def _moment(name: str) -> str:
    """Return the template of a moment; empty text if the run has no data interval.

    In a run without a logical date, the template variables of the data interval are not even defined.
    """
    return f"{{{{ {name}.isoformat() if {name} is defined and {name} else '' }}}}"
