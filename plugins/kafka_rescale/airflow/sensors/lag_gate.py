"""The gate that a run passes when the copies are close enough behind."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseSensorOperator, Context
from airflow.sdk.exceptions import AirflowSensorTimeout

from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook
from kafka_rescale.airflow.lag_gate import Gate, GateReason, Reading, Readings, not_answered
from kafka_rescale.airflow.markdown import lag_table, lag_verdict
from kafka_rescale.airflow.metrics import report_lag
from kafka_rescale.airflow.page_link import ApplicationPageLink
from kafka_rescale.airflow.retries import set_retry_policy
from kafka_rescale.airflow.runs import owner_of
from kafka_rescale.airflow.triggers.lag_gate import LagGateTrigger
from kafka_rescale.core.errors import RescaleError, UnsafeState

SETTLING_SECONDS = 1.0
"""Pause between two readings by the task itself, before it hands over to the triggerer."""
LEAST_SECONDS = 60.0
"""A gate that was nearly out of time when the copy was paused is still read a few times afterwards."""


class LagGateSensor(BaseSensorOperator):
    """
    Wait until the copy of every partition is within the acceptable recovery lag.

    The task passes an open gate at once. Before a shut gate, it waits in the triggerer.

    Between the end of a stage's ``warm_up`` and the beginning of ``catch_up``, no job copies, so the lag of the
    stage can only grow. Therefore the gate of a stage also accepts the lag that ``warm_up`` measured at its end.
    The gate over all stages does not accept it, because ``catch_up`` runs beside that gate.

    :param application_id: base name of the application
    :param kafka_config_id: id of the Airflow connection
    :param acceptable_lag: offsets per partition, inclusive (templated)
    :param stage: index of the stage, or None for all stages at the same time
    :param warmed_by: job of this run; the lags that it measured last open the gate too
    :param ready_job: job of this run that must be in state ``ready``; or ``bridge``, if the plan has bridges
    :param consecutive: how many readings in a row must pass
    :param poll_seconds: pause between two readings in the triggerer
    :param idle: whether the stage has nothing to copy; then the task reads nothing
    :param timeout: how long to wait; then the task looks once more, fails if the gate is shut, and is not retried
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
        idle: bool = False,
        timeout: timedelta = timedelta(hours=6),
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, **kwargs)
        set_retry_policy(self)
        self.application_id = application_id
        self.kafka_config_id = kafka_config_id
        self.acceptable_lag = acceptable_lag
        self.stage = stage
        self.warmed_by = warmed_by
        self.ready_job = ready_job
        self.consecutive = consecutive
        self.poll_seconds = poll_seconds
        self.idle = idle

    def execute(self, context: Context) -> dict[str, Any] | None:
        """Pass if the gate is open. Otherwise hand over to the triggerer.

        The task looks itself first, because a hand-over takes seconds, even if the gate is open.
        """
        if self.idle:
            self.log.info("This sub-topology has no state to copy.")
            return None
        gate = self._gate(context)
        reading = self._look(gate)
        if reading.reason.ends_wait:
            return self.execute_complete(context, reading.event())
        self.log.info("waiting in the triggerer: %s", reading)
        self._wait(gate, reading.reason, self.timeout)
        return None

    def _gate(self, context: Context) -> Gate:
        return Gate(
            application=self.application_id,
            owner=owner_of(context),
            threshold=int(self.acceptable_lag),
            stage=self.stage,
            warmed_by=self.warmed_by,
            ready_job=self.ready_job,
        )

    def _wait(self, gate: Gate, reason: GateReason, left: float) -> None:
        """Defer for the seconds that are left. While the copy is paused, they do not count."""
        is_paused = reason is GateReason.PAUSED
        trigger = LagGateTrigger(
            kafka_config_id=self.kafka_config_id,
            gate=asdict(gate),
            consecutive=self.consecutive,
            poll_seconds=self.poll_seconds,
            until=None if is_paused else time.time() + left,
            left_seconds=left if is_paused else None,
        )
        timeout = None if is_paused else timedelta(seconds=left)
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timeout)

    def _look(self, gate: Gate) -> Reading:
        """Return the first reading that does not pass, or is final. Otherwise return the last required reading."""
        readings = Readings(gate)
        reading = self._take(readings)
        for _ in range(self.consecutive - 1):
            if reading.reason.is_final or not reading.reason.passes:
                break
            time.sleep(SETTLING_SECONDS)
            reading = self._take(readings)
        return reading

    def _take(self, readings: Readings) -> Reading:
        try:
            reading = readings.take(KafkaRescaleHook(kafka_config_id=self.kafka_config_id).connection())
        except RescaleError as error:
            return not_answered(error)
        if reading.decision.lags:
            report_lag(readings.gate.application, readings.gate.job, reading.decision, by_task=True)
        return reading

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Go on after the triggerer. If the time is over, look once more: perhaps the triggerer was away.

        :raises UnsafeState: The gate is still shut. The error names what it waits for.
        """
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except AirflowSensorTimeout as over:
            reading = self._look(self._gate(context))
            if reading.reason.ends_wait or reading.reason is GateReason.PAUSED:
                left = {} if reading.reason.ends_wait else {"left_seconds": 0.0}
                return self.execute_complete(context, {**reading.event(), **left})
            raise UnsafeState(
                f"lag gate of {self.application_id}",
                found=f"not open within {timedelta(seconds=self.timeout)}: {reading}",
                expected="every copy near, and every job that the gate waits for at work",
                remedy="Mend that, then trigger the expansion again; it continues where the copies are.",
            ) from over

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Return the lags per partition, for the approval. If the copy was paused, or goes on, wait further."""
        reason = GateReason(event["reason"])
        if not reason.ends_wait:
            left = event.get("left_seconds")
            self.log.info("%s %s", reason, event["detail"])
            self._wait(self._gate(context), reason, self.timeout if left is None else max(LEAST_SECONDS, left))
        self.log.info("%s %s\n%s\n%s", event["reason"], event["detail"], lag_verdict(event), lag_table(event))
        if not reason.passes:
            raise UnsafeState(
                f"lag gate of {self.application_id}",
                found=event["detail"] or event["reason"],
                expected="this run's expansion, warming up",
                remedy="Trigger the expansion again; it continues where the copies are.",
            )
        return event
