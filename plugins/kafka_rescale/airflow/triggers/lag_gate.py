"""Watch the lags of many gates at a time, in the triggerer."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook
from kafka_rescale.airflow.lag_gate import Gate, GateReason, Reading, Readings, not_answered
from kafka_rescale.airflow.metrics import report_lag
from kafka_rescale.core.errors import RescaleError

log = logging.getLogger(__name__)

RENEW_SECONDS = 600.0
"""How long the trigger watches a paused copy; then the task defers anew. Shorter than the timeout of any gate."""


class LagGateTrigger(BaseTrigger):
    """
    Fire when every partition has been within the threshold in several readings in a row.

    The blocking reads run in threads, because ``sync_to_async`` would make the gates of a triggerer wait for each
    other. An outage sets the count of readings back to zero. The timeout of the deferral limits the wait.
    While the copy is paused, the task defers again and again, so that the pause doesn't count for the timeout.

    :param kafka_config_id: id of the Airflow connection; the trigger's stored arguments hold no secrets
    :param gate: fields of :class:`~kafka_rescale.airflow.lag_gate.Gate`
    :param consecutive: how many readings in a row must pass
    :param poll_seconds: seconds between two readings
    """

    def __init__(
        self, *, kafka_config_id: str, gate: dict[str, Any], consecutive: int = 3, poll_seconds: float = 2.0
    ) -> None:
        super().__init__()
        self.kafka_config_id = kafka_config_id
        self.gate = Gate(**gate)
        self.consecutive = consecutive
        self.poll_seconds = poll_seconds
        self._readings = Readings(self.gate)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the import path and the arguments."""
        arguments = {
            "kafka_config_id": self.kafka_config_id,
            "gate": asdict(self.gate),
            "consecutive": self.consecutive,
            "poll_seconds": self.poll_seconds,
        }
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: the gate has opened, can never open, or the copy was paused for ``RENEW_SECONDS``."""
        passed, last, renew_at = 0, "", math.inf
        while passed < self.consecutive:
            if passed or last:
                await asyncio.sleep(self.poll_seconds)
            reading = await self._look()
            if reading.decision.lags:
                report_lag(self.gate.application, self.gate.job, reading.decision)
            if (text := str(reading)) != last:
                log.info("gate of %s: %s", self.gate.application, text)
            last = text
            passed = passed + 1 if reading.reason.passes else 0
            is_paused = reading.reason is GateReason.PAUSED
            renew_at = min(renew_at, time.monotonic() + RENEW_SECONDS) if is_paused else math.inf
            if reading.reason.is_final or time.monotonic() >= renew_at:
                break
        yield TriggerEvent(reading.event())

    async def _look(self) -> Reading:
        try:
            connection = await KafkaRescaleHook(kafka_config_id=self.kafka_config_id).aconnection()
            return await asyncio.to_thread(self._readings.take, connection)
        except RescaleError as error:
            return not_answered(error)
