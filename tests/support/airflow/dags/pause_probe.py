"""An Airflow DAG of the system tests: an expansion whose cutover hangs in its pause. No Spark."""

from __future__ import annotations

from airflow.sdk import DAG, Context, chain
from kafka_rescale.airflow.dags.expansion_tasks import ExpansionTasks
from kafka_rescale.airflow.dags.params import expansion_params
from kafka_rescale.airflow.notifications import attach
from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.retries import DEFAULT_ARGS
from kafka_rescale.airflow.runs import owner_of
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.errors import Fenced
from kafka_rescale.kafka.client.waiting import now_ms, wait_until
from kafka_rescale.operations.application.load import application_files, load_application, topology_of
from kafka_rescale.operations.expansion.rescale import Rescale

TAKEN = ("preflight", "plan", "approve_cutover", "pause_alert")


class HangingOperator(RescaleOperator):
    """Begin the pause and do nothing more, until another run has rolled it back."""

    def execute(self, context: Context) -> None:
        """Hang."""
        application = self.application()
        rescale = Rescale.open(application, self.connection(application), owner_of(context))
        rescale.advance(Phase.QUIESCING, pause_started_ms=now_ms())
        wait_until(
            lambda: rescale.control.read().journal.phase is Phase.ROLLED_BACK,  # type: ignore[union-attr]
            seconds=300,
            what="somebody to roll back",
            remedy="",
            longest_pause=0.5,
        )
        raise Fenced("cutover", found="a rollback", expected="none", remedy="Look at it.")


for file in application_files():
    application = load_application(file)
    if application.pause_alert_seconds is None:
        continue
    make = ExpansionTasks(application, str(file), topology_of(application))
    with DAG(
        dag_id=f"pause_probe_{application.application_id}",
        schedule=None,
        params=expansion_params(application),
        default_args=DEFAULT_ARGS,
    ) as dag:
        hang = HangingOperator(task_id="cutover", application_file=str(file))
        check, plan, ask, alert = (make.operator(task) for task in make.tasks() if task.task_id in TAKEN)
        chain(check, plan, ask, [hang, alert])
    attach(dag, application)
    globals()[dag.dag_id] = dag
