"""For tests that harm a broker: a live copy on several brokers, beside an application that goes on writing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from confluent_kafka import KafkaException, Producer
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.settings import LIVE
from kafka_rescale.kafka.copy.units import units_of

from testbed.cluster import EmbeddedCluster
from testbed.processes import wait_until
from tests.integration.copy_helpers import T0, assert_copied, changelog, ends_of, expected_partition, plan_of

CONFIGS = {
    "cleanup.policy": "compact",
    "min.compaction.lag.ms": str(2**63 - 1),
    "retention.ms": "-1",
}
MOVES_AGAIN_SECONDS = 60
"""A test waits at most so long for a copy to move. If it does not move, the test fails."""


class Feed:
    """Writes to changelogs until it is stopped. If a broker is away, it tries again.

    :param transactional_id: the id of an application with exactly-once. Without an id, the producer is idempotent.
    """

    def __init__(self, connection: KafkaConnection, moves: list[Move], transactional_id: str) -> None:
        extra = {"transactional.id": transactional_id} if transactional_id else {"enable.idempotence": True}
        self._producer = Producer(connection.client(**extra))
        self._moves, self._transactional = moves, bool(transactional_id)
        self._over = Event()
        self._thread = Thread(target=self._run, daemon=True)
        if transactional_id:
            self._producer.init_transactions(60)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        assert self._producer.flush(60) == 0

    def _run(self) -> None:
        number = 0
        while not self._over.wait(0.05):
            try:
                number = self._write(number)
            except KafkaException:
                self._producer.abort_transaction(60)

    def _write(self, number: int) -> int:
        if self._transactional:
            self._producer.begin_transaction()
        for at in range(number, number + 20):
            for move in self._moves:
                key = b"key-%d" % (at % 500)
                partition = expected_partition(move.store_type, key, move.source_partitions)
                self._producer.produce(move.source, b"%d" % at, key, partition, timestamp=T0 + at)
        self._producer.poll(0)
        if self._transactional:
            self._producer.commit_transaction(60)
        return number + 20


class LiveCopy:
    """A worker that follows changelogs in a thread, as a task of `catch_up` does."""

    def __init__(self, connection: KafkaConnection, plan: Plan) -> None:
        self.worker = CopyWorker(connection, plan, units_of(plan.moves), LIVE)
        self.copied, self.failure = 0, ""
        self._over = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.worker.begin()
        self.worker.announce("session")
        self._thread.start()

    def has_reached(self, ends: dict[tuple[str, int], int]) -> bool:
        assert not self.failure, self.failure
        committed = {source: writer.restart.offset for source, writer in self.worker.writers.items()}
        return all(committed[source] >= end for source, end in ends.items())

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                self.copied += self.worker.step(0.05)
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"


class Beside:
    """The copy and the application beside which a test harms brokers."""

    def __init__(self, cluster: EmbeddedCluster, connection: KafkaConnection, plan: Plan) -> None:
        self.cluster, self.connection, self.plan = cluster, connection, plan
        self.copy = LiveCopy(connection, plan)

    def moves_again(self) -> float:
        """Wait until everything that is in the sources now is copied, and return how many seconds it took."""
        ends = ends_of(self.connection, *self.plan.moves)
        began = time.monotonic()
        wait_until(lambda: self.copy.has_reached(ends), timeout=MOVES_AGAIN_SECONDS, what="the copy to move again")
        return time.monotonic() - began


@contextmanager
def live_copy(cluster: EmbeddedCluster, unique: str, *, exactly_once: bool) -> Iterator[Beside]:
    """Give a running copy. At the end, assert that every record has arrived once, and in order per key."""
    connection = KafkaConnection(cluster.client_config())
    moves = [changelog(unique, "key-value", 4, 8, store) for store in ("a", "b")]
    plan, admin = plan_of(unique, *moves), ClusterAdmin(connection)
    for move in moves:
        admin.ensure_topic(move.source, move.source_partitions, 3, CONFIGS)
        admin.ensure_topic(move.target, move.target_partitions, 3, CONFIGS)
    feed = Feed(connection, moves, f"{unique}-blue" if exactly_once else "")
    beside = Beside(cluster, connection, plan)
    beside.moves_again()
    yield beside
    feed.stop()
    beside.moves_again()
    beside.copy.stop()
    worker = beside.copy.worker
    worker.run_to(ends_of(connection, *moves), now_ms())
    worker.close()
    for move in moves:
        assert_copied(connection, move)
