"""The gate between the approval and the cutover: it opens when the moment of the switch has come."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseSensorOperator, Context

from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook
from kafka_rescale.airflow.page_link import ApplicationPageLink
from kafka_rescale.airflow.retries import set_retry_policy
from kafka_rescale.airflow.runs import owner_of
from kafka_rescale.airflow.triggers.switch import SwitchTrigger
from kafka_rescale.core.roles import Role


class SwitchSensor(BaseSensorOperator):
    """
    Wait for the moment in which the application may be stopped.

    A window of the application file, the time in the approval, or a person's later order decides that moment
    (``switch_<application>``, or ``python -m kafka_rescale postpone|cut-over-now|cancel``). If the moment has
    come, the task succeeds at once. Otherwise it waits in the triggerer, and ``catch_up`` keeps the copies near
    meanwhile. Shortly before that moment, a pre-warmed generation restores what was copied since.

    :param application_file: path of the application file, read again when the task runs (templated)
    :param poll_seconds: pause between two readings in the triggerer
    """

    template_fields: Sequence[str] = ("application_file",)
    ui_color = "#e6d9f2"
    operator_extra_links = (ApplicationPageLink(),)

    def __init__(self, *, application_file: str, poll_seconds: float = 5.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        set_retry_policy(self)
        self.application_file = application_file
        self.poll_seconds = poll_seconds

    def execute(self, context: Context) -> str:
        """Let the new generation restore again if that is due. Pass if the moment has come, or defer.

        :returns: why the switch may begin.
        """
        from kafka_rescale.operations.application.load import load_application
        from kafka_rescale.operations.expansion.rewarm import restore_again
        from kafka_rescale.operations.expansion.switch import let_through

        application = load_application(self.application_file)
        connection = KafkaRescaleHook(kafka_config_id=application.kafka_conn_id_of(Role.ADMIN)).connection()
        restore_again(application, connection, owner=owner_of(context))
        answer = let_through(application, connection, owner=owner_of(context))
        self.log.info("%s", answer.told)
        if answer.proven_ms:
            self.log.info("The copies are proven as of %.0f s ago.", time.time() - answer.proven_ms / 1000)
        if answer.passes:
            return answer.told
        trigger = SwitchTrigger(
            kafka_config_id=application.kafka_conn_id_of(Role.PLAN),
            application_id=application.application_id,
            owner=owner_of(context),
            poll_seconds=self.poll_seconds,
        )
        # The limit of the wait is in the control topic, where a person may raise it.
        self.defer(trigger=trigger, method_name="execute_complete")
        raise AssertionError("deferred")

    def execute_complete(self, context: Context, event: str) -> str:
        """Decide again, because a person may have given another order since the trigger fired."""
        self.log.info("%s", event)
        return self.execute(context)
