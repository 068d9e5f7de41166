"""A deadline on the pause of an application. It runs beside the task that makes the pause."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseSensorOperator, Context

from kafka_rescale.airflow.page_link import ApplicationPageLink
from kafka_rescale.airflow.retries import set_retry_policy
from kafka_rescale.airflow.runs import owner_of
from kafka_rescale.airflow.triggers.pause_alert import PauseAlertTrigger


class PauseAlertSensor(BaseSensorOperator):
    """
    Watch in the triggerer how long the pause of an application lasts. End when it is too long, or over.

    Airflow's own deadlines count from the moment in which a run is made or queued. This deadline counts from the
    beginning of the pause, within the run. The task succeeds in both cases, and its callback decides whether to
    call notifiers.

    :param application_id: base name of the application
    :param kafka_config_id: id of the Airflow connection
    :param limit_seconds: the longest pause without a notification
    """

    ui_color = "#f6c7b6"
    operator_extra_links = (ApplicationPageLink(),)

    def __init__(self, *, application_id: str, kafka_config_id: str, limit_seconds: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        set_retry_policy(self)
        self.application_id = application_id
        self.kafka_config_id = kafka_config_id
        self.limit_seconds = limit_seconds

    def execute(self, context: Context) -> None:
        """Hand over to the triggerer at once."""
        trigger = PauseAlertTrigger(
            kafka_config_id=self.kafka_config_id,
            application_id=self.application_id,
            owner=owner_of(context),
            limit_seconds=self.limit_seconds,
        )
        # There is no timeout, because the end of the pause or of the expansion ends the wait.
        self.defer(trigger=trigger, method_name="execute_complete")

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Return ``late``, ``seconds`` and ``phase``, for the callback."""
        say = self.log.warning if event["late"] else self.log.info
        say("pause of %s: %s", self.application_id, event)
        return event
