"""``process_<application>``: a pipeline that this project runs, thread by thread, on a schedule."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG, CronDataIntervalTimetable

from kafka_rescale.airflow.backfills import interval_params
from kafka_rescale.airflow.dags.factory import START
from kafka_rescale.airflow.dags.pipeline_params import process_params
from kafka_rescale.airflow.operators.process import AssignOperator, PipelineCallbackOperator, ProcessOperator
from kafka_rescale.airflow.operators.processors import WarmUpProcessorsOperator
from kafka_rescale.airflow.retries import DEFAULT_ARGS
from kafka_rescale.airflow.spark.kafka_for_spark import kafka_arguments
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.internal_topics import levels
from kafka_rescale.core.roles import Role

WITHOUT_INTERVALS = ("@continuous", "@once")

DOC = """
Processes what has come into the inputs of `{application_id}` since the last run, exactly once.

`assign` creates the internal topics that are missing and gives every task to a stream thread. Then there is one
`spark-submit` for each thread and level: level 1 reads only inputs, level 2 what level 1 has written, and so on. A
thread without anything to read starts no driver. Each task commits its outputs, its changelogs and its offsets
together; an attempt that was thought dead is fenced by the next one. Whatever fails can be cleared, or left to the
next run. Where there are several clients, the log of `assign` shows who has what, and what is still to come.
`warm_up_processors` starts a driver only on clients whose processors are being split.

A backfill processes past intervals once more, each by a generation of its own, and writes where the file says
under `backfill`; what is at work here is not touched. In the UI, or by
`airflow backfill create --dag-id process_{application_id} --from-date ... --to-date ...`.

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
        last = assign = AssignOperator(task_id="assign", application_file=str(file))
        assign >> WarmUpProcessorsOperator.partial(
            task_id="warm_up_processors",
            application_file=str(file),
            application_id=name,
            **kafka_arguments(application, Role.COPY),
            conn_id=application.spark_conn_id,
            conf=dict(application.spark_conf),
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
                conf=dict(application.spark_conf),
            ).expand(thread=assign.output)
            last >> threads
            last = threads
    return dag


def _timetable(schedule: str | None) -> str | CronDataIntervalTimetable | None:
    """Return a schedule of which the runs have data intervals, without which nothing could be backfilled."""
    if schedule is None or schedule in WITHOUT_INTERVALS:
        return schedule
    return CronDataIntervalTimetable(schedule, timezone="UTC")
