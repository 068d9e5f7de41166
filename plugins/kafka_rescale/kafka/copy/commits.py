"""When the units of a worker are committed, and what happens when a transaction is aborted instead."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, wait

from confluent_kafka import Consumer, Message

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import Fenced, Outage, RescaleError
from kafka_rescale.kafka.client.failures import Rewound
from kafka_rescale.kafka.copy.settings import CopySettings
from kafka_rescale.kafka.copy.units import CopyUnit
from kafka_rescale.kafka.copy.writer import UnitWriter

Explain = Callable[[CopyUnit, RescaleError, int, int], RescaleError]
REWINDS = 5
"""How often in a row a unit may go back to its last commit before that is a failure."""


class Commits:
    """The transactions of a worker's units.

    :param consumer: of the group that keeps the positions.
    :param pool: runs the commits of several units at the same time, as they wait for brokers.
    :param explain: finds the record that a reason is about, in a range of a unit's offsets.

    ``has_rewound`` tells whether a transaction was aborted: readers of uncommitted records still find its records.
    """

    def __init__(self, consumer: Consumer, settings: CopySettings, pool: Executor, explain: Explain) -> None:
        self._consumer, self._settings, self._pool, self.explain = consumer, settings, pool, explain
        self._rewound: dict[TopicPartition, int] = {}
        self._committed = time.monotonic()
        self.has_rewound = False

    def due(self, writers: Collection[UnitWriter]) -> list[UnitWriter]:
        """Return the units whose transactions are large or old enough to be committed now."""
        settings, now = self._settings, time.monotonic()
        if now - self._committed >= settings.commit_seconds:
            self._committed = now
            refresh_ms = settings.refresh_seconds * 1000
            return [w for w in writers if w.is_dirty or w.unrecorded_ms > refresh_ms]
        return [
            w
            for w in writers
            if w.pending_records >= settings.commit_records or w.pending_bytes >= settings.commit_bytes
        ]

    def wrote(self, writer: UnitWriter, batch: Sequence[Message]) -> bool:
        """Write to a unit's transaction; False if it was aborted and the unit is back at its last commit.

        :raises RescaleError: the reason for an abort that is no outage, or that has happened too often.
        """
        try:
            writer.write(batch)
        except Rewound as rewound:
            self._rewind(writer, rewound, int(batch[-1].offset() or 0) + 1)
            return False
        return True

    def commit(self, writers: Sequence[UnitWriter]) -> bool:
        """Commit some units; False if a transaction was aborted and its unit is back at its last commit.

        :raises RescaleError: as ``wrote`` does.
        :raises StuckCall: a commit has not returned.
        """
        running = [self._pool.submit(self._commit_or_rewind, writer) for writer in writers]
        wait(running, return_when=FIRST_EXCEPTION)
        begun = [each for each in running if not each.cancel()]
        wait(begun)
        # A fenced worker must not start anew, however its other commits have ended.
        for error in (each.exception() for each in begun):
            if isinstance(error, Fenced):
                raise error
        return all([each.result() for each in begun])

    def _commit_or_rewind(self, writer: UnitWriter) -> bool:
        try:
            writer.commit(self._consumer)
        except Rewound as rewound:
            self._rewind(writer, rewound, writer.position)
            return False
        self._rewound.pop(writer.unit.source, None)
        return True

    def _rewind(self, writer: UnitWriter, rewound: Rewound, end: int) -> None:
        self.has_rewound = True
        times = self._rewound[writer.unit.source] = self._rewound.get(writer.unit.source, 0) + 1
        if times > REWINDS or not isinstance(rewound.reason, Outage):
            raise self.explain(writer.unit, rewound.reason, writer.restart.offset, end) from None
        writer.rewind()
