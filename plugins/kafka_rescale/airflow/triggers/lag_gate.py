"""Watch the lags of many gates at a time, in the triggerer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook
from kafka_rescale.airflow.lag_gate import Gate, GateReason, Reading, Readings, not_answered
from kafka_rescale.airflow.metrics import report_lag
from kafka_rescale.airflow.reading_threads import WATCHES, start_reading
from kafka_rescale.core.errors import RescaleError

log = logging.getLogger(__name__)


class LagGateTrigger(BaseTrigger):
    """
    Fire when every partition has been within the threshold in several readings in a row.

    The blocking reads run in the project's own threads, because ``sync_to_async`` would make the gates of a
    triggerer wait for each other. An outage sets the count of readings back to zero. The timeout of the deferral
    limits the wait. When the copy is paused, and when it goes on, the trigger fires at once. The task then defers
    anew with the time that the gate has left, so that the pause doesn't count for the timeout.

    :param kafka_config_id: id of the Airflow connection; the trigger's stored arguments hold no secrets
    :param gate: fields of :class:`~kafka_rescale.airflow.lag_gate.Gate`
    :param consecutive: how many readings in a row must pass
    :param poll_seconds: seconds between two readings
    :param until: when the deferral times out, in seconds since the epoch; None if it does not, or in a trigger
        that an earlier version has stored
    :param left_seconds: seconds that the gate has left if the copy was paused when the task deferred; otherwise
        None
    """

    def __init__(
        self,
        *,
        kafka_config_id: str,
        gate: dict[str, Any],
        consecutive: int = 3,
        poll_seconds: float = 2.0,
        until: float | None = None,
        left_seconds: float | None = None,
    ) -> None:
        super().__init__()
        self.kafka_config_id = kafka_config_id
        self.gate = Gate(**gate)
        self.consecutive = consecutive
        self.poll_seconds = poll_seconds
        self.until = until
        self.left_seconds = left_seconds
        self._readings = Readings(self.gate)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the import path and the arguments."""
        arguments = {
            "kafka_config_id": self.kafka_config_id,
            "gate": asdict(self.gate),
            "consecutive": self.consecutive,
            "poll_seconds": self.poll_seconds,
            "until": self.until,
            "left_seconds": self.left_seconds,
        }
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: the gate has opened, can never open, or the copy is paused, or goes on.

        The event of a gate that is still shut has ``left_seconds``, the time that the gate has left; None if that
        is not known.
        """
        passed, last, was_paused = 0, "", self.left_seconds is not None
        while passed < self.consecutive:
            if passed or last:
                await asyncio.sleep(self.poll_seconds)
            reading, is_told = await self._look()
            if reading.decision.lags:
                report_lag(self.gate.application, self.gate.job, reading.decision)
            if (text := str(reading)) != last:
                log.info("gate of %s: %s", self.gate.application, text)
            last = text
            passed = passed + 1 if reading.reason.passes else 0
            # An outage does not tell whether the copy is still paused.
            has_turned = is_told and (reading.reason is GateReason.PAUSED) is not was_paused
            if reading.reason.is_final or (has_turned and not reading.reason.passes):
                break
        left = {} if reading.reason.ends_wait else {"left_seconds": self._left()}
        yield TriggerEvent({**reading.event(), **left})

    def _left(self) -> float | None:
        if self.until is None:
            return self.left_seconds
        return max(0.0, self.until - time.time())

    async def _look(self) -> tuple[Reading, bool]:
        """Return a reading, and whether the cluster has told it."""
        try:
            connection = await KafkaRescaleHook(kafka_config_id=self.kafka_config_id).aconnection()
            return await start_reading(WATCHES, self._readings.take, connection), True
        except RescaleError as error:
            return not_answered(error), False
