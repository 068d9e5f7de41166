"""The operators of a chain of applications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import DagIsPaused, TriggerDagRunOperator
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import DagRunTriggerException
from airflow.utils.state import DagRunState

from kafka_rescale.airflow.retries import set_retry_policy
from kafka_rescale.airflow.runs import run_state
from kafka_rescale.airflow.triggers.member_run import MemberRunTrigger
from kafka_rescale.core.autoscaling.decision import RunState
from kafka_rescale.core.errors import Outage, Refused

if TYPE_CHECKING:
    from airflow.sdk import Context


class UnpausedDagsOperator(BaseOperator):
    """Refuse to begin a chain if one of its expansion DAGs is paused and could not run.

    :param dag_ids: ids of the members' expansion DAGs.
    """

    def __init__(self, *, dag_ids: Sequence[str], **arguments: Any) -> None:
        super().__init__(**arguments)
        set_retry_policy(self)
        self.dag_ids = tuple(dag_ids)

    def execute(self, context: Context) -> None:
        """Check every DAG.

        :raises Refused: At least one DAG is paused. The error names all paused DAGs.
        """
        paused = [dag_id for dag_id in self.dag_ids if context["ti"].get_dag(dag_id).is_paused]
        if paused:
            raise Refused(
                "chain",
                found=f"{', '.join(paused)}, paused",
                expected="DAGs that can run, for every application of the chain",
                remedy="Unpause these DAGs, then clear this task. Nothing has been touched.",
            )


class MemberExpansionOperator(TriggerDagRunOperator):
    """
    Trigger a member's expansion with a fixed run id, and wait for it. A run with that id that has ended is
    cleared.

    The provider's operator clears any run that has the id. If that run is still at work, Airflow would kill its
    tasks and start them again, perhaps a cutover. So this operator only waits for a run at work.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        set_retry_policy(self)

    def execute(self, context: Context) -> None:
        """Wait for the run if it is at work. Otherwise trigger it.

        :raises Outage: Airflow doesn't say whether the run is at work.
        """
        run = f"{self.trigger_dag_id}/{self.trigger_run_id}"
        state = run_state(run)
        if state is RunState.UNKNOWN:
            raise Outage(
                f"run {run}",
                found="no answer from Airflow whether the run is at work",
                expected="an answer, because a run at work must not be started again",
                remedy="Clear this task when Airflow answers again. Until then, a run at work goes on.",
            )
        if state is RunState.RUNNING:
            self._wait_for_it(context)
        try:
            super().execute(context)
        except DagRunTriggerException as triggered:
            if triggered.deferrable and triggered.wait_for_completion:
                # Airflow triggers the run, and waits with its own trigger, which never ends if the run is deleted.
                # With any state that wait ends at once, and `execute_complete` begins ours.
                triggered.allowed_states = list(DagRunState)
            raise

    def _wait_for_it(self, context: Context) -> None:
        if context["ti"].get_dag(self.trigger_dag_id).is_paused:
            raise DagIsPaused(self.trigger_dag_id)
        self.log.info(
            "Run %s is at work. This task waits for it and does not start it again.", self.trigger_run_id
        )
        context["ti"].xcom_push(key="trigger_run_id", value=self.trigger_run_id)
        self._defer_until_its_end(str(self.trigger_run_id))

    def execute_complete(self, context: Context, event: tuple[str, dict[str, Any]]) -> None:
        """Wait further if the run is at work. Otherwise succeed or fail as the run has.

        :raises Refused: The run was deleted.
        """
        found = event[1]
        run_id: str = found["run_ids"][0]
        state = found.get(run_id)
        if state == RunState.ABSENT:
            raise Refused(
                f"run {self.trigger_dag_id}/{run_id}",
                found="no run with this id any more: somebody has deleted it",
                expected="a run that ends",
                remedy="Clear this task: it triggers the run again, which goes on where the expansion is.",
            )
        if state not in {*self.allowed_states, *self.failed_states}:
            self._defer_until_its_end(run_id)
        super().execute_complete(context, event)

    def _defer_until_its_end(self, run_id: str) -> None:
        trigger = MemberRunTrigger(dag_id=self.trigger_dag_id, run_id=run_id, poll_seconds=self.poke_interval)
        self.defer(trigger=trigger, method_name="execute_complete")
