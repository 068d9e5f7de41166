"""What a driver reads every few seconds, to know whether its copy hurts the cluster or the application."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from kafka_rescale.core.errors import RescaleError
from kafka_rescale.core.expansion.pacing import Readings
from kafka_rescale.core.expansion.pacing_lag import growth, recent
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.progress import CopyProgress
from kafka_rescale.kafka.reading.progress import Snapshot

T = TypeVar("T")
log = logging.getLogger(__name__)


class Harm:
    """The readings for the pace of one job.

    :param group: group of the generation that is at work: its input lag counts.
    :param progress: progress of the copies, if the job copies. The job reads it before each reading.
    """

    def __init__(
        self, connection: KafkaConnection, plan: Plan, group: str, progress: CopyProgress | None = None
    ) -> None:
        self._admin, self._group, self._progress = ClusterAdmin(connection), group, progress
        self._touched = sorted({topic for move in plan.moves for topic in (move.source, move.target)})
        self._inputs = sorted({each.topic for each in plan.inputs})
        self._lags: list[tuple[int, int]] = []
        self._at, self._copied, self._throttled_ms = time.monotonic(), 0, -1
        self._told: set[str] = set()

    def read(self, snapshot: Snapshot) -> Readings:
        """Return what has happened since the last call; what can't be read is None.

        :param snapshot: how far the copies are.
        """
        now, copied = time.monotonic(), snapshot.bytes
        throttled_ms = self._progress.throttled_ms if self._progress is not None else -1
        seen = Readings(
            now_ms(),
            now - self._at,
            max(0, copied - self._copied) if self._progress is not None else None,
            None if self._throttled_ms < 0 else max(0, throttled_ms - self._throttled_ms),
            self._known("replicas in sync", lambda: self._admin.under_replicated(self._touched)),
            self._known("input lag", self._growth),
        )
        self._at, self._copied, self._throttled_ms = now, copied, throttled_ms
        return seen

    def _growth(self) -> str | None:
        committed = self._admin.committed(self._group)
        ends = self._admin.end_offsets(self._inputs, if_present=True)
        known = [
            max(0, end - committed[topic][partition])
            for topic, of in ends.items()
            for partition, end in of.items()
            if partition in committed.get(topic, {})
        ]
        if not known:
            return None
        self._lags = recent([*self._lags, (now_ms(), sum(known))])
        return growth(self._lags)

    def _known(self, what: str, ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except RescaleError as error:
            if what not in self._told:
                log.warning("the pace does not follow the %s: %s", what, error)
                self._told.add(what)
            return None
