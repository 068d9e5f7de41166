"""Wait in the triggerer for the run of a chain's member."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from kafka_rescale.airflow.reading_threads import WATCHES, start_reading
from kafka_rescale.airflow.runs import run_state
from kafka_rescale.core.autoscaling.decision import UNFINISHED

log = logging.getLogger(__name__)


class MemberRunTrigger(BaseTrigger):
    """
    Fire when a member's run has ended, or no longer exists.

    Airflow's own trigger counts the runs that have ended. So it waits for ever if somebody deletes the run.

    :param dag_id: id of the member's expansion DAG
    :param run_id: id of the run
    :param poll_seconds: seconds between two looks
    """

    def __init__(self, *, dag_id: str, run_id: str, poll_seconds: float = 5.0) -> None:
        super().__init__()
        self.dag_id = dag_id
        self.run_id = run_id
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the import path and the arguments."""
        arguments = {"dag_id": self.dag_id, "run_id": self.run_id, "poll_seconds": self.poll_seconds}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event, with the state of the run as Airflow's own trigger has it, or ``absent``."""
        name, said = f"{self.dag_id}/{self.run_id}", None
        while (state := await start_reading(WATCHES, run_state, name)) in UNFINISHED:
            if state is not said:
                log.info("run %s: %s", name, state)
            said = state
            await asyncio.sleep(self.poll_seconds)
        yield TriggerEvent((self.serialize()[0], {"run_ids": [self.run_id], self.run_id: str(state)}))
