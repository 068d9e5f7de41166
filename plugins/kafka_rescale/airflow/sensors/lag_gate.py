"""The gate between warming up and going on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseSensorOperator, Context

from kafka_rescale.airflow.lag_gate import Gate, GateReason
from kafka_rescale.airflow.markdown import lag_table, lag_verdict
from kafka_rescale.airflow.page_link import ApplicationPageLink
from kafka_rescale.airflow.runs import owner_of
from kafka_rescale.airflow.triggers.lag_gate import LagGateTrigger
from kafka_rescale.core.errors import UnsafeState


class LagGateSensor(BaseSensorOperator):
    """
    Wait, outside of a worker slot, until every partition's copy is within the acceptable recovery lag.

    Nothing copies between the end of a stage's ``warm_up`` and ``catch_up``, so a stage's own lag can only grow
    there. Its gate therefore also accepts what ``warm_up`` itself measured at its end; the gate over all stages,
    beside a running ``catch_up``, does not.

    :param application_id: base name of the application
    :param kafka_config_id: id of the Airflow connection
    :param acceptable_lag: offsets per partition, inclusive (templated)
    :param stage: index of the stage, or None for all stages at the same time
    :param warmed_by: job of this run whose last measured lags open the gate as well
    :param ready_job: job of this run that must be in state ``ready``
    :param consecutive: how many readings in a row must pass
    :param poll_seconds: pause between two readings
    :param timeout: how long to wait; then the task fails and is not retried
    """

    template_fields: Sequence[str] = ("acceptable_lag",)
    ui_color = "#d5efe9"
    operator_extra_links = (ApplicationPageLink(),)

    def __init__(
        self,
        *,
        application_id: str,
        kafka_config_id: str,
        acceptable_lag: int | str,
        stage: int | None = None,
        warmed_by: str | None = None,
        ready_job: str | None = None,
        consecutive: int = 3,
        poll_seconds: float = 2.0,
        timeout: timedelta = timedelta(hours=6),
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, **kwargs)
        self.application_id = application_id
        self.kafka_config_id = kafka_config_id
        self.acceptable_lag = acceptable_lag
        self.stage = stage
        self.warmed_by = warmed_by
        self.ready_job = ready_job
        self.consecutive = consecutive
        self.poll_seconds = poll_seconds

    def execute(self, context: Context) -> None:
        """Hand over to the triggerer at once."""
        gate = Gate(
            application=self.application_id,
            owner=owner_of(context),
            threshold=int(self.acceptable_lag),
            stage=self.stage,
            warmed_by=self.warmed_by,
            ready_job=self.ready_job,
        )
        trigger = LagGateTrigger(
            kafka_config_id=self.kafka_config_id,
            gate=asdict(gate),
            consecutive=self.consecutive,
            poll_seconds=self.poll_seconds,
        )
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=self.timeout))

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Return the lags per partition, for the approval."""
        self.log.info("%s %s\n%s\n%s", event["reason"], event["detail"], lag_verdict(event), lag_table(event))
        if not GateReason(event["reason"]).passes:
            raise UnsafeState(
                f"lag gate of {self.application_id}",
                found=event["detail"] or event["reason"],
                expected="this run's expansion, warming up",
                remedy="Trigger the expansion again; it continues where the copies are.",
            )
        return event
