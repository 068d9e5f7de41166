"""A deadline on the pause of an application, beside the task that makes the pause."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseSensorOperator, Context

from kafka_rescale.airflow.page_link import ApplicationPageLink
from kafka_rescale.airflow.runs import owner_of
from kafka_rescale.airflow.triggers.pause_alert import PauseAlertTrigger


class PauseAlertSensor(BaseSensorOperator):
    """
    Watch, outside of a worker slot, how long the application is stopped, and end when that is too long or over.

    Airflow's own deadlines count from the moment in which a run is made or queued; this one counts from within the
    run. It succeeds in either case: whom to tell is decided by its callback.

    :param application_id: base name of the application
    :param kafka_config_id: id of the Airflow connection
    :param limit_seconds: the longest pause that nobody is told of
    """

    ui_color = "#f6c7b6"
    operator_extra_links = (ApplicationPageLink(),)

    def __init__(self, *, application_id: str, kafka_config_id: str, limit_seconds: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
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
        # Without a timeout: the end of the pause, or of the expansion, ends it.
        self.defer(trigger=trigger, method_name="execute_complete")

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Return ``late``, ``seconds`` and ``phase``, for the callback."""
        say = self.log.warning if event["late"] else self.log.info
        say("pause of %s: %s", self.application_id, event)
        return event
