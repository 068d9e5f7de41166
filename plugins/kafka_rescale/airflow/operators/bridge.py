"""Check whether a bridge has anything to do, before a Spark driver is started for it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context
from airflow.sdk.bases.skipmixin import SkipMixin

from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.triggers.bridge_due import BridgeDueTrigger, read_verdict
from kafka_rescale.core.roles import Role

if TYPE_CHECKING:
    from kafka_rescale.core.control.bridge import Verdict

MANUAL = "manual"
LONGEST = timedelta(days=1)
"""The longest wait. A run keeps the DAG version that it began with, so it must not wait for ever."""


class BridgeDueOperator(RescaleOperator, SkipMixin):
    """
    Wait in the triggerer until the bridge has to run. In a run that a person triggered, answer at once.

    While a run waits, it uses no worker slot, and the schedule makes no other run.
    """

    inherits_from_skipmixin = True
    role = Role.PLAN

    def execute(self, context: Context) -> str | None:
        """Return why the bridge has to run."""
        found = self._verdict()
        if found.due:
            return found.reason
        if context["dag_run"].run_type == MANUAL:
            return self._over(context, found)
        application = self.application()
        trigger = BridgeDueTrigger(
            kafka_config_id=application.kafka_conn_id_of(self.role),
            application_id=application.application_id,
            seconds=LONGEST.total_seconds(),
        )
        self.defer(trigger=trigger, method_name="execute_complete")
        return None

    def execute_complete(self, context: Context, event: Any) -> str:
        """Check again, and return why the bridge has to run."""
        found = self._verdict()
        return found.reason if found.due else self._over(context, found)

    def _over(self, context: Context, found: Verdict) -> str:
        context["ti"].xcom_push(key="return_value", value=found.reason)  # skip() leaves by an exception
        self.skip(ti=context["ti"], tasks=context["task"].get_flat_relatives(upstream=False))
        return found.reason

    def _verdict(self) -> Verdict:
        application = self.application()
        found = read_verdict(self.connection(application), application.application_id)
        self.log.info("%s", found.reason)
        return found
