"""The operators of a chain of applications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import DagIsPaused, TriggerDagRunOperator
from airflow.providers.standard.triggers.external_task import DagStateTrigger
from airflow.sdk import BaseOperator

from kafka_rescale.airflow.runs import run_state
from kafka_rescale.core.autoscaling.decision import RunState
from kafka_rescale.core.errors import Outage, Refused

if TYPE_CHECKING:
    from airflow.sdk import Context


class UnpausedDagsOperator(BaseOperator):
    """Refuse to begin a chain of which a later DAG could not run.

    :param dag_ids: of the members' expansions.
    """

    def __init__(self, *, dag_ids: Sequence[str], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.dag_ids = tuple(dag_ids)

    def execute(self, context: Context) -> None:
        """Ask for every DAG.

        :raises Refused: some are paused; all of them are named.
        """
        paused = [dag_id for dag_id in self.dag_ids if context["ti"].get_dag(dag_id).is_paused]
        if paused:
            raise Refused(
                "chain",
                found=f"{', '.join(paused)}, paused",
                expected="DAGs that can run, for every application of the chain",
                remedy="Unpause them, then clear this task. Nothing has been touched.",
            )


class MemberExpansionOperator(TriggerDagRunOperator):
    """
    Trigger a member's expansion under a name that stays, and wait for it; clear the run that has ended before.

    The provider clears whatever run has that name. Of one that is still at work Airflow then kills the tasks and
    starts them anew, a cutover among them; so that one is only waited for.
    """

    def execute(self, context: Context) -> None:
        """Go on waiting for a run at work; trigger any other.

        :raises Outage: Airflow doesn't say whether there is one.
        """
        run = f"{self.trigger_dag_id}/{self.trigger_run_id}"
        state = run_state(run)
        if state is RunState.UNKNOWN:
            raise Outage(
                f"run {run}",
                found="no answer whether it is at work",
                expected="one: a run at work must not be begun anew",
                remedy="Clear this task when Airflow answers again; the run goes on meanwhile, if there is one.",
            )
        if state is RunState.RUNNING:
            self._wait_for_it(context)
        super().execute(context)

    def _wait_for_it(self, context: Context) -> None:
        if context["ti"].get_dag(self.trigger_dag_id).is_paused:
            raise DagIsPaused(self.trigger_dag_id)
        self.log.info("%s is at work: it is waited for, not begun anew.", self.trigger_run_id)
        context["ti"].xcom_push(key="trigger_run_id", value=self.trigger_run_id)
        trigger = DagStateTrigger(
            dag_id=self.trigger_dag_id,
            states=[*self.allowed_states, *self.failed_states],
            run_ids=[str(self.trigger_run_id)],
            poll_interval=self.poke_interval,
        )
        self.defer(trigger=trigger, method_name="execute_complete")
