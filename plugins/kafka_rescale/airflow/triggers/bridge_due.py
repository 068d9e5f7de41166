"""Wait in the triggerer until a bridge has something to carry."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook
from kafka_rescale.airflow.reading_threads import BRIDGES, start_reading
from kafka_rescale.core.errors import Outage

if TYPE_CHECKING:
    from kafka_rescale.core.control.bridge import Verdict
    from kafka_rescale.kafka.client.connection import KafkaConnection

log = logging.getLogger(__name__)


class BridgeDueTrigger(BaseTrigger):
    """
    Fire when a bridge has something to carry, or when the wait has lasted long enough.

    During an outage the trigger waits. After any other error it fires, so that the task meets the error itself.

    :param kafka_config_id: id of the Airflow connection; the trigger's stored arguments hold no secrets
    :param application_id: base name of the application
    :param seconds: longest wait
    :param poll_seconds: seconds between two checks
    """

    def __init__(
        self, *, kafka_config_id: str, application_id: str, seconds: float, poll_seconds: float = 15.0
    ) -> None:
        super().__init__()
        self.kafka_config_id = kafka_config_id
        self.application_id = application_id
        self.seconds = seconds
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the import path and the arguments."""
        arguments = {
            "kafka_config_id": self.kafka_config_id,
            "application_id": self.application_id,
            "seconds": self.seconds,
            "poll_seconds": self.poll_seconds,
        }
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event, with the reason for the end of the wait."""
        until, said = time.monotonic() + self.seconds, ""
        while time.monotonic() < until:
            told, is_over = await self._look()
            if told != said:
                log.info("bridge of %s: %s", self.application_id, told)
            said = told
            if is_over:
                break
            await asyncio.sleep(self.poll_seconds)
        yield TriggerEvent(said)

    async def _look(self) -> tuple[str, bool]:
        try:
            connection = await KafkaRescaleHook(kafka_config_id=self.kafka_config_id).aconnection()
            found = await start_reading(BRIDGES, read_verdict, connection, self.application_id)
        except Outage as error:
            return str(error), False
        except Exception as error:
            return f"{type(error).__name__}: {error}", True
        return found.reason, found.due


def read_verdict(connection: KafkaConnection, application_id: str) -> Verdict:
    """Return whether a driver is due for an application's bridge. This reads the control topic and the brokers."""
    from kafka_rescale.core.control.bridge import when_restored
    from kafka_rescale.kafka.control.control_topic import ControlTopic
    from kafka_rescale.kafka.copy.bridging import verdict_now

    state = ControlTopic(connection, application_id).read()
    return when_restored(verdict_now(connection, state), state.journal, state.results)
