"""Has green lost records by itself, in transactions that were aborted?

While its tasks restore, Kafka Streams may still abort. What it has aborted, it has written again only when it has
processed its inputs. So this waits until green has processed all records that were in its inputs at one moment.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress

from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.values import listed
from kafka_rescale.core.verify.aborted import SHOWN, Aborted
from kafka_rescale.core.verify.transactions import Transactions
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.remaining import with_records
from kafka_rescale.kafka.verify.aborted import Logs, aborted_reports, read_transactions

log = logging.getLogger(__name__)

ROUNDS = 3
READING_SECONDS = 300.0
"""How long this reads batches in all."""
WAITING_SECONDS = 1800.0
"""How long it waits for green in all."""
STILL_SECONDS = 120.0
"""How long green may commit nothing before this gives up waiting for it. Then what is not known is told."""
TELL_SECONDS, POLL_SECONDS = 20.0, 1.0


def look_for_aborted(
    connection: KafkaConnection, journal: Journal, *, still_seconds: float = STILL_SECONDS
) -> Aborted:
    """Look for records since the promotion that green wrote in aborted transactions, and has not written again.

    This waits for nothing if green writes without transactions.

    :raises Outage: the brokers don't answer.
    """
    return _Look(connection, journal, still_seconds).result()


class _Look:
    def __init__(self, connection: KafkaConnection, journal: Journal, still_seconds: float) -> None:
        self._connection, self._admin = connection, ClusterAdmin(connection)
        self._group, self._sources = journal.plan.green, tuple(journal.green_start)
        self._changelogs = {move.target for move in journal.plan.changelogs}
        self._still_seconds, self._ends_at = still_seconds, time.monotonic() + WAITING_SECONDS
        self._own, self._outputs = _logs(journal.green_ends), _logs(journal.output_ends)
        self._logs: Logs = {**self._outputs, **self._own}
        self._unread: tuple[str, ...] = ()
        self._reading_seconds = READING_SECONDS

    def result(self) -> Aborted:
        self._read(self._own or self._logs)
        if self._is_without_transactions():
            return Aborted(unread=self._unread[:SHOWN])
        self._read(self._logs)
        unprocessed: tuple[str, ...] = ()
        for _ in range(ROUNDS):
            judged = self._positions()
            unprocessed = self._await_processed()
            is_decided = self._await_decided()
            # What would answer an aborted record may be in what is not read, not processed, or not decided.
            is_known = is_decided and not unprocessed and not self._unread
            known = judged if is_known else {}
            found = aborted_reports(self._connection, self._group, self._logs, known, self._changelogs)
            if not is_known or not any(each.undecided for each in found):
                break
        return Aborted(topics=found, unprocessed=unprocessed[:SHOWN], unread=self._unread[:SHOWN])

    def _is_without_transactions(self) -> bool:
        """Whether green has written something, and nothing in a transaction."""
        logs = self._logs.values()
        return any(each.batches for each in logs) and not any(each.are_used for each in logs)

    def _read(self, logs: Logs) -> None:
        """Read logs to their ends. What a purge passes meanwhile is tried again."""
        topics = {topic for topic, _ in logs}
        present = topics - self._admin.absent_of(topics)
        for _ in range(ROUNDS):
            ends = self._admin.end_offsets(present, read_committed=False)
            begins = self._admin.begin_offsets(present)
            began = time.monotonic()
            self._unread = read_transactions(self._connection, logs, begins, ends, seconds=self._reading_seconds)
            self._reading_seconds -= time.monotonic() - began
            if not self._unread or self._reading_seconds <= 0:
                return

    def _positions(self) -> PartitionOffsets:
        found: PartitionOffsets = {}
        for (topic, partition), each in self._logs.items():
            found.setdefault(topic, {})[partition] = each.position
        return found

    def _await_processed(self) -> tuple[str, ...]:
        """Wait until green has processed what its inputs have now; return the partitions that it has not."""
        ends = self._admin.end_offsets(self._sources)
        counts = {topic: len(of) for topic, of in ends.items()}
        moved = time.monotonic()
        told, before, left = moved, PartitionOffsets(), tuple(self._sources)
        while True:
            # Brokers don't tell offsets of a transaction that is about to be committed. They are asked again.
            with suppress(Outage):
                committed = self._admin.committed(self._group, counts)
                left = tuple(f"{topic}-{p}" for topic, p in self._unprocessed(committed, ends))
                moved, before = (time.monotonic(), committed) if committed != before else (moved, before)
            now = time.monotonic()
            is_over = now - moved > self._still_seconds or now > self._ends_at
            if not left or is_over or not self._admin.describe_group(self._group).is_live:
                return left
            if now - told > TELL_SECONDS:
                told = now
                log.info("waiting for %s to process what its inputs had: %s", self._group, listed(left))
            time.sleep(POLL_SECONDS)

    def _unprocessed(self, committed: PartitionOffsets, ends: PartitionOffsets) -> list[tuple[str, int]]:
        ranges = {
            (topic, partition): (committed.get(topic, {}).get(partition), end)
            for topic, of in ends.items()
            for partition, end in of.items()
        }
        return sorted(with_records(self._connection, ranges))

    def _await_decided(self) -> bool:
        """Read on until every transaction that is open now has ended; return whether that came in time.

        A coordinator writes a transaction's markers behind its answer. So what green has committed may still seem
        to be open.
        """
        self._read(self._logs)
        now, began = self._positions(), time.monotonic()
        while any((o := each.open_since) is not None and o < now[t][p] for (t, p), each in self._logs.items()):
            if time.monotonic() - began > self._still_seconds or self._reading_seconds <= 0:
                return False
            time.sleep(POLL_SECONDS)
            self._read(self._logs)
        return True


def _logs(ends: PartitionOffsets) -> dict[tuple[str, int], Transactions]:
    return {(topic, p): Transactions(end) for topic, of in ends.items() for p, end in of.items()}
