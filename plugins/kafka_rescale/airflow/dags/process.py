"""``process_<application>``: runs a pipeline on a schedule, one Spark job for each stream thread."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG, CronDataIntervalTimetable

from kafka_rescale.airflow.backfills import interval_params
from kafka_rescale.airflow.dags.factory import START
from kafka_rescale.airflow.dags.pipeline_params import process_params
from kafka_rescale.airflow.fields import require_known_fields
from kafka_rescale.airflow.operators.process import AssignOperator, PipelineCallbackOperator, ProcessOperator
from kafka_rescale.airflow.operators.processors import WarmUpProcessorsOperator
from kafka_rescale.airflow.retries import DEFAULT_ARGS
from kafka_rescale.airflow.spark.kafka_for_spark import kafka_arguments
from kafka_rescale.airflow.spark.settings import unrendered
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.internal_topics import levels
from kafka_rescale.core.roles import Role

WITHOUT_INTERVALS = ("@continuous", "@once")

DOC = """
Processes the records that have come into the inputs of `{application_id}` since the last run, exactly once.

`assign` creates the missing internal topics and assigns every task to a stream thread. Then each thread gets one
`spark-submit` per level: level 1 reads only inputs, level 2 reads what level 1 has written, and so on. A thread
that has nothing to read starts no driver. Each task commits its outputs, its changelogs and its offsets together.
A job that makes no progress for `max.poll.interval.ms` is ended, so that the other threads don't wait for it.
If an attempt was only thought to be dead, the next attempt fences it. You can clear a failed task, or leave its
work to the next run. If there are several clients, the log of `assign` shows which client has which tasks, and
which tasks will move. `warm_up_processors` starts a driver only on clients whose processors are being split.

A backfill processes past intervals again. Each interval gets a generation of its own, which writes to the topics
that the file names under `backfill`. The generation that works here is not touched. Start a backfill in the UI, or
with `airflow backfill create --dag-id process_{application_id} --from-date ... --to-date ...`.

```
{description}
```
"""


def process_dag(application: PipelineApplication, file: Path) -> DAG:
    """Return the DAG that runs a pipeline."""
    name, pipeline = application.application_id, pipeline_named(application.pipeline)
    with DAG(
        dag_id=f"process_{name}",
        auto_register=False,
        schedule=_timetable(application.schedule),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        params={**process_params(application), **interval_params()},
        default_args=DEFAULT_ARGS,
        doc_md=DOC.format(application_id=name, description=pipeline.describe().rstrip()),
        tags=["kafka-rescale", "process", *application.tags],
    ) as dag:
        last = assign = AssignOperator(
            task_id="assign", application_file=str(file), pre_execute=require_known_fields
        )
        assign >> WarmUpProcessorsOperator.partial(
            task_id="warm_up_processors",
            application_file=str(file),
            application_id=name,
            **kafka_arguments(application, Role.COPY),
            conn_id=application.spark_conn_id,
            conf=unrendered(application.spark_conf),
        ).expand(client=[client.client_id for client in application.members])
        if application.on_partition_expansion is not None:
            assign >> PipelineCallbackOperator(task_id="callback", application_file=str(file))
        for level, _ in enumerate(levels(pipeline.topology), start=1):
            threads = ProcessOperator.partial(
                task_id=f"process_{level}",
                application_file=str(file),
                application_id=name,
                level=level,
                **kafka_arguments(application, Role.COPY),
                conn_id=application.spark_conn_id,
                conf=unrendered(application.spark_conf),
            ).expand(thread=assign.output)
            last >> threads
            last = threads
    return dag


def _timetable(schedule: str | None) -> str | CronDataIntervalTimetable | None:
    """Return a schedule whose runs have data intervals. Without data intervals there could be no backfill."""
    if schedule is None or schedule in WITHOUT_INTERVALS:
        return schedule
    return CronDataIntervalTimetable(schedule, timezone="UTC")
