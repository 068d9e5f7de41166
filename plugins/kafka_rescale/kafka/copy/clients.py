"""The clients of a copy worker: they are opened, replaced and closed together."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Thread

from confluent_kafka import KafkaException

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import ClusterOutage, Fenced, Outage
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.client.bounded_call import StuckCall, bounded
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import poll_until
from kafka_rescale.kafka.copy.bucket import Bucket
from kafka_rescale.kafka.copy.commits import Commits
from kafka_rescale.kafka.copy.marks import EMPTIED, read_positions
from kafka_rescale.kafka.copy.refused import explained
from kafka_rescale.kafka.copy.settings import CopySettings
from kafka_rescale.kafka.copy.units import CopyUnit, buckets_of
from kafka_rescale.kafka.copy.writer import UnitWriter
from kafka_rescale.kafka.reading.committed import AT_ONCE, closing_consumer, copy_consumer
from kafka_rescale.kafka.reading.log_range import QUERY_SECONDS, log_range

COMMIT_THREADS = 8
CLOSE_SECONDS = 10.0
ANSWER_SECONDS = 2.0


class CopyClients:
    """One consumer, and one producer per bucket of units.

    Each producer has fenced every older producer of its bucket.

    :param group: the consumer group that keeps the positions.
    :param batch_bytes: per target topic, the largest batch that it accepts.
    :raises Outage: the transaction coordinator does not answer.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        plan: Plan,
        units: Sequence[CopyUnit],
        settings: CopySettings,
        group: str,
        batch_bytes: Mapping[str, int],
    ) -> None:
        self._connection, self._group, self._settings = connection, group, settings
        self._is_abandoned = False
        self.consumer = copy_consumer(connection, group, **settings.consumer())
        divided = buckets_of(units)
        # Commits wait for the brokers, so several buckets commit at the same time.
        self.pool = ThreadPoolExecutor(max_workers=max(1, min(COMMIT_THREADS, len(divided))))
        opened = self.pool.map(
            lambda of: Bucket(connection, of, plan.green, batch_bytes[of[0].move.target], settings.still_seconds),
            divided,
        )
        self.buckets: list[Bucket] = list(opened)
        self.writers: dict[TopicPartition, UnitWriter] = {s: w for b in self.buckets for s, w in b.writers.items()}
        self.commits = Commits(self.consumer, settings, self.pool, partial(explained, connection), self.buckets)

    def committed(self) -> dict[TopicPartition, int]:
        """Return, for every unit, the next offset to read that this worker has committed."""
        return {source: writer.restart.offset for source, writer in self.writers.items()}

    def await_answer(self, stuck: ClusterOutage) -> None:
        """Wait until a broker answers a new client: as long as no broker does, new clients don't help.

        :param stuck: the error to raise if no broker answers for ``stall_seconds``.
        """

        def answers() -> bool:
            with closing_consumer(self._connection, self._group) as consumer:
                try:
                    return bool(consumer.list_topics(timeout=ANSWER_SECONDS).brokers)
                except KafkaException:
                    return False

        poll_until(answers, seconds=self._settings.stall_seconds, otherwise=lambda: stuck)

    def with_records(self, sources: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return the sources from which a new client can read records that this worker has not committed.

        Records of an open transaction, or of a partition without a leader, can't be read yet.
        """
        found, committed, began = [], self.committed(), time.monotonic()
        with closing_consumer(self._connection, self._group) as consumer:
            for source in sources:
                if time.monotonic() - began > QUERY_SECONDS:
                    break  # Brokers are away; check the other sources next time.
                with suppress(Outage):
                    if log_range(consumer, source).end > committed[source]:
                        found.append(source)
        return found

    def assert_newest(self, session: str) -> None:
        """Refuse to fence a newer worker. Such a worker shows by commits that this worker has not made.

        :param session: the session that this worker has left in its marks; empty if it has left no session.
        :raises Fenced: there is a newer worker.
        """
        with closing_consumer(self._connection, self._group, **AT_ONCE) as consumer:
            found = read_positions(consumer, self.writers)
        for source, position in found.items():
            writer = self.writers[source]
            is_beyond = writer.has_begun and position.offset > max(writer.position, writer.restart.offset)
            other = bool(session) and position.mark.session not in {"", session}
            if (position.mark.state != EMPTIED and is_beyond) or other:
                raise Fenced(
                    f"copy of {writer.unit}",
                    found=f"position {position.offset} of another worker",
                    expected="to be the newest attempt",
                    remedy="Nothing to do here: the newer attempt goes on.",
                )

    def go_on_from(self, before: CopyClients) -> None:
        """Let every unit go on from its committed position.

        A unit without a committed position goes on from where the previous clients had begun.
        """
        found = read_positions(self.consumer, self.writers)
        for source, writer in self.writers.items():
            known, position = before.writers[source], found.get(source)
            if not known.has_begun:
                continue
            is_known = position is not None and position.mark.state != EMPTIED
            writer.begin(position if position and is_known else known.restart, committed=is_known)

    def abandon(self) -> None:
        """Leave these clients behind without waiting for anything."""
        self._is_abandoned = True
        for bucket in self.buckets:
            bucket.abandon()
        self.pool.shutdown(wait=False, cancel_futures=True)
        Thread(target=self.consumer.close, name="close consumer", daemon=True).start()

    def close(self) -> None:
        """Give up uncommitted records and close all clients."""
        if self._is_abandoned:
            return
        list(self.pool.map(Bucket.abort, self.buckets))
        self.pool.shutdown()
        with suppress(StuckCall):
            bounded(self.consumer.close, CLOSE_SECONDS, self._group, "close")
