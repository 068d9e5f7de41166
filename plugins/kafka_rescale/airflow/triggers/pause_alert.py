"""Watch the length of a pause in the triggerer, even if the task that makes the pause dies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from kafka_rescale.airflow.hooks.rescale import ConnectionMissing, KafkaRescaleHook
from kafka_rescale.airflow.metrics import report_pause_so_far
from kafka_rescale.airflow.reading_threads import WATCHES, start_reading
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.core.expansion.pause_alert import PauseReading, PauseState, read_pause, with_lost_pause

if TYPE_CHECKING:
    from kafka_rescale.kafka.client.connection import KafkaConnection

log = logging.getLogger(__name__)

LOOKS_IN_VAIN = 60
"""How many checks of a trigger in a row must fail with an error that waiting can't mend, before it gives up.

An API server that is just restarting gives such an error too."""

ANSWER_SECONDS = 1.0
"""How long a look waits for the answer of its reading, before it judges by the clock what was read last."""

_IN_VAIN = (ConnectionMissing, InvalidInput, Refused)


class PauseAlertTrigger(BaseTrigger):
    """
    Fire when the pause of a run's expansion has become too long, or is over.

    If brokers don't answer, the trigger keeps what it read last: an outage makes a pause longer, not shorter. It
    judges by the clock also while a reading hangs, and takes the answer when it comes. An error that waiting can't
    mend, such as a missing connection or lost records, ends the watch. But if a pause has already begun, the
    trigger goes on and measures the pause by the clock.

    :param kafka_config_id: id of the Airflow connection; the trigger's stored arguments hold no secrets
    :param application_id: base name of the application
    :param owner: the run that holds the lease
    :param limit_seconds: the longest pause without a notification
    :param poll_seconds: seconds between two readings
    """

    def __init__(
        self,
        *,
        kafka_config_id: str,
        application_id: str,
        owner: str,
        limit_seconds: float,
        poll_seconds: float = 1.0,
    ) -> None:
        super().__init__()
        self.kafka_config_id = kafka_config_id
        self.application_id = application_id
        self.owner = owner
        self.limit_seconds = limit_seconds
        self.poll_seconds = poll_seconds
        self._known: ControlState | None = None
        self._reading: asyncio.Future[ControlState] | None = None
        self._in_vain = 0

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the import path and the arguments."""
        arguments = {
            "kafka_config_id": self.kafka_config_id,
            "application_id": self.application_id,
            "owner": self.owner,
            "limit_seconds": self.limit_seconds,
            "poll_seconds": self.poll_seconds,
        }
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event, when there is nothing more to watch."""
        try:
            reading = await self._last_reading()
        finally:
            if self._reading is not None:
                self._reading.cancel()
        late = reading.state is PauseState.LATE
        yield TriggerEvent({"late": late, "seconds": reading.seconds, "phase": reading.phase})

    async def _last_reading(self) -> PauseReading:
        reading, said = PauseReading(PauseState.WAITING), ""
        while not reading.state.is_final:
            reading = await self._look()
            report_pause_so_far(self.application_id, reading.seconds)
            if (text := f"{reading.state} {reading.phase}") != said:
                log.info("pause of %s: %s", self.application_id, text)
            said = text
            if not reading.state.is_final:
                await asyncio.sleep(self.poll_seconds)
        return reading

    async def _look(self) -> PauseReading:
        try:
            if self._reading is None:
                connection = await KafkaRescaleHook(kafka_config_id=self.kafka_config_id).aconnection()
                self._reading = start_reading(WATCHES, _read, connection, self.application_id)
            await asyncio.wait([self._reading], timeout=ANSWER_SECONDS)
            if self._reading.done():
                answer, self._reading = self._reading, None
                self._known = with_lost_pause(answer.result(), self._known)
                self._in_vain = 0
        except Exception as error:
            # An outage must not end this watch. Only the end of the pause may, or an error that waiting can't
            # mend.
            log.warning("pause of %s: %s", self.application_id, error)
            self._in_vain = self._in_vain + 1 if isinstance(error, _IN_VAIN) else 0
        reading = self._by_the_clock()
        is_hopeless = self._in_vain >= LOOKS_IN_VAIN and reading.state is PauseState.WAITING
        return PauseReading(PauseState.LOST) if is_hopeless else reading

    def _by_the_clock(self) -> PauseReading:
        from kafka_rescale.kafka.client.waiting import now_ms

        if self._known is None:
            return PauseReading(PauseState.WAITING)
        return read_pause(self._known, self.owner, self.limit_seconds, now_ms())


def _read(connection: KafkaConnection, application: str) -> ControlState:
    from kafka_rescale.kafka.control.control_topic import ControlTopic

    return ControlTopic(connection, application).read()
