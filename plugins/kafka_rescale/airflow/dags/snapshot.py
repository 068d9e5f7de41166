"""``snapshot_<application>``: the state of every store, day by day, as Parquet."""

from __future__ import annotations

from datetime import UTC, datetime, time
from pathlib import Path

from airflow.sdk import DAG, CronDataIntervalTimetable

from kafka_rescale.airflow.dags.factory import START
from kafka_rescale.airflow.dags.params import snapshot_params
from kafka_rescale.airflow.operators.snapshot import SnapshotOperator
from kafka_rescale.airflow.retries import DEFAULT_ARGS
from kafka_rescale.airflow.spark.kafka_for_spark import kafka_arguments
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.roles import Role

DOC = """
Writes the state of every store of `{application_id}` as of the end of each day (UTC) to `{location}`, as Parquet.

It only reads Kafka, takes no lease and may run beside an expansion: the generation that was at work at the end of
the day is read, and named in the result. A day is built from the newest earlier one and the records since. Days
that are missing are made by a backfill: in the UI, or
`airflow backfill create --dag-id snapshot_{application_id} --from-date ... --to-date ...`. A day that the
changelogs can't tell exactly any more is refused, and the first exact one is named.
"""


def snapshot_dag(application: Application, file: Path) -> DAG | None:
    """Return the snapshots of one application, or None if its file doesn't ask for any."""
    declared = application.snapshots
    if declared is None:
        return None
    name, first = application.application_id, declared.start_date
    with DAG(
        dag_id=f"snapshot_{name}",
        auto_register=False,
        # "@daily" would be a timetable whose data interval is a single moment, unless configured otherwise.
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
            conf=dict(application.spark_conf),
            start=_moment("data_interval_start"),
            end=_moment("data_interval_end"),
            from_scratch="{{ params.from_scratch }}",
        )
    return dag


def _moment(name: str) -> str:
    """A run without a logical date has no data interval: its names aren't even defined."""
    return f"{{{{ {name}.isoformat() if {name} is defined and {name} else '' }}}}"
