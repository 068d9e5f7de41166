"""Wait in the triggerer until the moment of the switch has come, or a person has given another order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from kafka_rescale.airflow.hooks.rescale import ConnectionMissing, KafkaRescaleHook
from kafka_rescale.airflow.reading_threads import WATCHES, start_reading
from kafka_rescale.airflow.triggers.pause_alert import LOOKS_IN_VAIN
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.switch import Switch
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.expansion.pacing_words import told_stop
from kafka_rescale.core.expansion.rewarming import is_due
from kafka_rescale.core.expansion.switch_wait import Standing, utc, wait_of

if TYPE_CHECKING:
    from kafka_rescale.core.control.state import ControlState
    from kafka_rescale.kafka.client.connection import KafkaConnection

log = logging.getLogger(__name__)


class SwitchTrigger(BaseTrigger):
    """
    Fire when the switch may begin, or never will, or when the new generation has to restore again before it.

    The control topic says what the trigger waits for, so a restart of Airflow or of the triggerer loses nothing.
    The task decides again when the trigger has fired. During an outage the trigger waits. After any other error it
    fires, so that the task meets the error itself. It does so, too, if the connection stays missing.

    :param kafka_config_id: id of the Airflow connection; the trigger's stored arguments hold no secrets
    :param application_id: base name of the application
    :param owner: the run that holds the lease
    :param poll_seconds: seconds between two readings
    """

    def __init__(
        self, *, kafka_config_id: str, application_id: str, owner: str, poll_seconds: float = 5.0
    ) -> None:
        super().__init__()
        self.kafka_config_id = kafka_config_id
        self.application_id = application_id
        self.owner = owner
        self.poll_seconds = poll_seconds
        self._missing = 0

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the import path and the arguments."""
        arguments = {
            "kafka_config_id": self.kafka_config_id,
            "application_id": self.application_id,
            "owner": self.owner,
            "poll_seconds": self.poll_seconds,
        }
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event, with the reason for the end of the wait."""
        is_over, said = False, None
        while not is_over:
            is_over, text = await self._look()
            if text != said:
                log.info("switch of %s: %s", self.application_id, text)
            said = text
            if not is_over:
                await asyncio.sleep(self.poll_seconds)
        yield TriggerEvent(said)

    async def _look(self) -> tuple[bool, str]:
        try:
            connection = await KafkaRescaleHook(kafka_config_id=self.kafka_config_id).aconnection()
            self._missing = 0
            return await start_reading(WATCHES, _read, connection, self.application_id, self.owner)
        except ConnectionMissing as error:
            self._missing += 1
            return self._missing >= LOOKS_IN_VAIN, str(error)
        except Outage as error:
            return False, str(error)
        except Exception as error:
            return True, f"{type(error).__name__}: {error}"


def _read(connection: KafkaConnection, application_id: str, owner: str) -> tuple[bool, str]:
    from kafka_rescale.kafka.client.waiting import now_ms
    from kafka_rescale.kafka.control.control_topic import ControlTopic

    return is_over(ControlTopic(connection, application_id).read(), owner, now_ms())


def is_over(state: ControlState, owner: str, now_ms: int) -> tuple[bool, str]:
    """Return whether the task has to decide, and a text that stays the same while nothing changes."""
    journal, lease = state.journal, state.lease
    if journal is None or lease is None or lease.holder != owner or journal.phase is not Phase.WARMING:
        return True, "the expansion is no longer this run's, or its cutover has begun"
    switch = Switch.of(journal, state.switch)
    wait = wait_of(switch, now_ms, told_stop(state, now_ms, with_figures=False))
    if wait.standing is Standing.STOPPED:
        return False, wait.why
    if journal.warmth is not None and is_due(journal.warmth, switch, now_ms):
        return True, "the switch is near: the new generation may have to restore again"
    named = f"{switch.order} by {switch.by}" if switch.by else switch.order
    opens = "opened by a person alone" if wait.opens_ms is None else f"opens {utc(wait.opens_ms)}"
    return wait.standing is not Standing.WAITS, f"{wait.standing}, order {named}, {opens}"
