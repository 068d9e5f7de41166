"""The readings of a lag gate, written to the control topic like results of jobs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.lag_history import LagHistory
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.errors import Outage, RescaleError
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic

log = logging.getLogger(__name__)

WRITE_MS = 5_000


class GateRecord:
    """The record of one gate of one run. Only the page depends on it, so a failure to write it is only logged.

    The page takes a gate for the present work as long as its record says that it holds. So a write that an outage
    has prevented is made up for by the next reading.

    :param job: ``lag_gate/<stage>`` or ``gate_all``.
    :param run: the run that holds the lease.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        application: str,
        job: str,
        run: str,
        *,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._control = ControlTopic(connection, application)
        self._job, self._run, self._clock = job, run, clock
        self._history: LagHistory | None = None
        self._written_ms, self._state = 0, ""
        self._gave_up = False

    def add(self, progress: Sequence[PartitionProgress], threshold: int, state: str) -> None:
        """Note one reading. It is written at most every five seconds, but at once if the gate's answer changes.

        :param threshold: acceptable lag in offsets per partition.
        :param state: the gate's answer.
        """
        if self._gave_up:
            return
        try:
            self._add(progress, threshold, state)
        except Outage as error:
            log.warning("a reading of %s is not recorded yet: %s", self._job, error)
        except RescaleError as error:
            self._gave_up = True
            log.warning("the readings of %s are not recorded any more: %s", self._job, error)

    def _add(self, progress: Sequence[PartitionProgress], threshold: int, state: str) -> None:
        at = self._clock()
        history = self._known() if self._history is None else self._history
        self._history = history.observed(progress, at, threshold)
        if state == self._state and at - self._written_ms < WRITE_MS:
            return
        result = JobResult(
            job=self._job,
            run=self._run,
            attempt=1,
            state=state,
            partitions=tuple(progress),
            lags=self._history,
        )
        self._control.put_result(result)
        self._written_ms, self._state = at, state

    def _known(self) -> LagHistory:
        """Return the readings of an earlier trigger of the same gate, because a triggerer may be restarted."""
        known = self._control.read().results.get(self._job)
        return known.lags if known is not None and known.run == self._run else LagHistory()
