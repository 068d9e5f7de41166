"""Whether a bridge has anything to do, asked before a Spark driver is started for it."""

from __future__ import annotations

from airflow.sdk import Context
from airflow.sdk.bases.skipmixin import SkipMixin

from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.core.roles import Role


class BridgeDueOperator(RescaleOperator, SkipMixin):
    """Say whether the bridge has to run, and skip it if not."""

    inherits_from_skipmixin = True
    role = Role.PLAN

    def execute(self, context: Context) -> str:
        """Return why the bridge has to run."""
        from kafka_rescale.kafka.control.control_topic import ControlTopic
        from kafka_rescale.kafka.copy.bridging import verdict_now

        application = self.application()
        connection = self.connection(application)
        state = ControlTopic(connection, application.application_id).read()
        found = verdict_now(connection, state)
        self.log.info("%s", found.reason)
        if not found.due:
            context["ti"].xcom_push(key="return_value", value=found.reason)  # skip() leaves by an exception
            self.skip(ti=context["ti"], tasks=context["task"].get_flat_relatives(upstream=False))
        return found.reason
