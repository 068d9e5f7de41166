"""``bridge_<application>``: carries records of repartitioned inputs on until their producers have moved."""

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
"""How soon a bridge is up again after its run has failed."""

DOC = """
Carries what producers still write to the old topics of `{application_id}` on to the new ones, exactly once and in
order per key.

`due` waits in the triggerer until there is something to carry, for a day at most: one run waits, and the schedule
makes no other one meanwhile. A run that a person triggers is queued behind the one that waits, and is not needed:
that one begins by itself. Without one, it says at once whether there is something to carry. `bridge` begins when
an expansion has made the new topics, waits for the promotion, and then runs for as long as it takes: until nothing
has come into the old topics for {silent_seconds} s, everything has been carried on and no transaction is open. A
run that dies is continued by the next one, whose transactional ids fence it.
"""


def bridge_dag(application: Application, file: Path) -> DAG:
    """Return the bridge of one application.

    Every application has one, whatever its file says today: a policy or a mode that is edited while a bridge is at
    work must not take away what starts it again. Whether there is something to carry on the journal tells ``due``.
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
        # It only ever does what an expansion has decided: paused, it would hold that up. One that has never had
        # anything to do need not look. Airflow asks for this once, and goes by what a person sets afterwards.
        is_paused_upon_creation=not repartitioned,
        default_args=DEFAULT_ARGS,
        doc_md=DOC.format(application_id=name, silent_seconds=silent_seconds),
        tags=["kafka-rescale", "bridge", *application.tags],
    ) as dag:
        due = BridgeDueOperator(task_id="due", application_file=str(file))
        due >> spark_job(application, "bridge", silent_seconds=silent_seconds, conf=_conf(application))
    return dag


def _conf(application: Application) -> dict[str, str]:
    """A standalone master gives a job every core that is free, and this one would keep them for weeks."""
    return {**application.spark_conf, "spark.cores.max": str(application.bridge_cores)}
