"""``bridge_<application>``: carries the records of repartitioned inputs over until their producers have moved."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from kafka_rescale.airflow.dags.expansion_tasks import spark_job
from kafka_rescale.airflow.dags.factory import START
from kafka_rescale.airflow.operators.bridge import BridgeDueOperator
from kafka_rescale.airflow.retries import DEFAULT_ARGS
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import InputPolicy

EVERY = timedelta(minutes=2)
"""How soon the schedule starts a bridge again after its run has failed."""

DOC = """
Carries every record that producers still write to the old topics of `{application_id}` over to the new topics,
exactly once and in order per key.

`due` waits in the triggerer until there is something to carry, for a day at most. While one run waits, the
schedule makes no other run. You need not trigger a run: Airflow would queue it behind the waiting run, which
begins by itself. If no run is waiting, a run that you trigger says at once whether there is something to carry.

`bridge` begins when an expansion has restored every stage, and waits for the promotion. The gate of the last stage
waits until the bridge is up. After the promotion it runs until three conditions hold: no record has come into the
old topics for {silent_seconds} s, every record has been carried over, and no transaction is open. If a run dies,
the next run continues its work, and the transactional ids of the next run fence the dead run.
"""


def bridge_dag(application: Application, file: Path) -> DAG:
    """Return the bridge DAG of one application.

    Every application has this DAG, even if its file declares no repartitioned input. Somebody may edit a policy or
    the mode while a bridge is at work, and the DAG that restarts the bridge must not disappear then. The task
    ``due`` reads from the journal whether there is something to carry.
    """
    repartitioned = [i for i in application.inputs if i.policy is InputPolicy.REPARTITIONED]
    name = application.application_id
    silent_seconds = max(i.silent_seconds for i in repartitioned or application.inputs)
    with DAG(
        dag_id=f"bridge_{name}",
        auto_register=False,
        schedule=EVERY,
        start_date=START,
        catchup=False,
        max_active_runs=1,
        # This DAG only does what an expansion has decided, and a paused DAG would hold up that expansion. Without
        # a repartitioned input there is nothing to look for. Airflow reads this value once, when it first sees the
        # DAG; after that a person decides.
        is_paused_upon_creation=not repartitioned,
        default_args=DEFAULT_ARGS,
        doc_md=DOC.format(application_id=name, silent_seconds=silent_seconds),
        tags=["kafka-rescale", "bridge", *application.tags],
    ) as dag:
        due = BridgeDueOperator(task_id="due", application_file=str(file))
        due >> spark_job(application, "bridge", silent_seconds=silent_seconds)
    return dag
