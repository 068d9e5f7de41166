"""When the units of a worker are committed, and what happens when a transaction is aborted instead."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, wait

from confluent_kafka import Consumer, Message

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import Fenced, Outage, RescaleError
from kafka_rescale.kafka.client.failures import Rewound
from kafka_rescale.kafka.copy.bucket import Bucket
from kafka_rescale.kafka.copy.settings import CopySettings
from kafka_rescale.kafka.copy.units import CopyUnit
from kafka_rescale.kafka.copy.writer import UnitWriter

Explain = Callable[[CopyUnit, RescaleError, int, int], RescaleError]
REWINDS = 5
"""How often in a row a bucket may go back to its last commit before that is a failure."""


class Commits:
    """The transactions of a worker's buckets of units.

    :param consumer: consumer of the group that keeps the positions.
    :param pool: runs the commits of several buckets at the same time, because they wait for brokers.
    :param explain: finds the record that an error is about, in a range of a unit's offsets.
    :param buckets: the buckets of all units of the worker.

    ``has_rewound`` tells whether a transaction was aborted: readers of uncommitted records still find its records.
    """

    def __init__(
        self,
        consumer: Consumer,
        settings: CopySettings,
        pool: Executor,
        explain: Explain,
        buckets: Sequence[Bucket],
    ) -> None:
        self._consumer, self._settings, self._pool, self.explain = consumer, settings, pool, explain
        self._buckets = buckets
        self._by_source = {source: bucket for bucket in buckets for source in bucket.writers}
        self._rewound: dict[Bucket, int] = {}
        self._committed = time.monotonic()
        self.has_rewound = False

    def due(self, writers: Collection[UnitWriter]) -> list[UnitWriter]:
        """Return the units whose transactions are large or old enough to be committed now.

        If a transaction is large enough, these are all units whose records it has.
        """
        settings, now = self._settings, time.monotonic()
        if now - self._committed >= settings.commit_seconds:
            self._committed = now
            refresh_ms = settings.refresh_seconds * 1000
            return [w for w in writers if w.is_dirty or w.unrecorded_ms > refresh_ms]
        large = [
            b
            for b in self._buckets
            if b.pending_records >= settings.commit_records or b.pending_bytes >= settings.commit_bytes
        ]
        return [writer for bucket in large for writer in bucket.writers.values() if writer.is_dirty]

    def write(self, batches: Mapping[TopicPartition, Sequence[Message]]) -> set[TopicPartition]:
        """Write records to the transactions of their units; return the units that are back at their last commits.

        If a transaction is aborted, all units of its bucket go back. The rest of what was read of them is not
        written, because the records before it were aborted.

        :raises RescaleError: a transaction was aborted for a reason other than an outage, or too often in a row.
            The error is that reason.
        """
        lost: set[TopicPartition] = set()
        for source, batch in batches.items():
            if not batch or source in lost:
                continue
            bucket = self._by_source[source]
            try:
                bucket.writers[source].write(batch)
            except Rewound as rewound:
                self._rewind(bucket, rewound, {source: int(batch[-1].offset() or 0) + 1})
                lost.update(bucket.writers)
        return lost

    def commit(self, writers: Sequence[UnitWriter]) -> bool:
        """Commit some units; return False if a transaction was aborted and its units are at their last commits.

        :raises RescaleError: as ``write`` does.
        :raises StuckCall: a commit has not returned.
        """
        by_bucket: dict[Bucket, list[UnitWriter]] = {}
        for writer in writers:
            by_bucket.setdefault(self._by_source[writer.unit.source], []).append(writer)
        running = [self._pool.submit(self._commit_or_rewind, bucket, of) for bucket, of in by_bucket.items()]
        wait(running, return_when=FIRST_EXCEPTION)
        begun = [each for each in running if not each.cancel()]
        wait(begun)
        # A fenced worker must not start anew, however its other commits have ended.
        for error in (each.exception() for each in begun):
            if isinstance(error, Fenced):
                raise error
        return all([each.result() for each in begun])

    def _commit_or_rewind(self, bucket: Bucket, writers: Sequence[UnitWriter]) -> bool:
        try:
            bucket.commit(self._consumer, writers)
        except Rewound as rewound:
            self._rewind(bucket, rewound, {})
            return False
        self._rewound.pop(bucket, None)
        return True

    def _rewind(self, bucket: Bucket, rewound: Rewound, ends: Mapping[TopicPartition, int]) -> None:
        """Take a bucket back to its last commits.

        :param ends: ends (exclusive) of what units were writing just now. Other units have written up to their
            positions.
        """
        self.has_rewound = True
        times = self._rewound[bucket] = self._rewound.get(bucket, 0) + 1
        if times > REWINDS or not isinstance(rewound.reason, Outage):
            raise self._explained(bucket, rewound.reason, ends) from None
        bucket.rewind()

    def _explained(self, bucket: Bucket, reason: RescaleError, ends: Mapping[TopicPartition, int]) -> RescaleError:
        for source, writer in bucket.writers.items():
            start, end = writer.restart.offset, ends.get(source, writer.position)
            found = self.explain(writer.unit, reason, start, end) if start < end else reason
            if found is not reason:
                return found
        return reason
