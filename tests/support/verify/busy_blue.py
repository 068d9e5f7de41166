"""A changelog with writes, deletes and compaction all the time, and a copy that follows it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Producer
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.settings import LIVE
from kafka_rescale.kafka.copy.units import units_of

EAGER = {"min.cleanable.dirty.ratio": "0.001", "segment.ms": "300", "delete.retention.ms": "30000"}
"""Topic settings by which a segment is closed after a moment, and compacted at once."""
EAGER_BROKER = {"log.cleaner.backoff.ms": "50", "log.cleaner.threads": "2"}
HOT, RETIRES_EVERY = 300, 1.0


class BusyBlue:
    """Overwrites hot keys at random. Every second, some keys retire, and new keys take their place.

    :param rate: records per second.
    """

    def __init__(self, connection: KafkaConnection, move: Move, seed: int, rate: int) -> None:
        self._connection, self._move, self._rate = connection, move, rate
        self._random = random.Random(seed)
        self._hot = [b"key-%d" % n for n in range(HOT)]
        self._made = HOT
        self.retired: list[bytes] = []
        self.records = 0

    def write(self, over: threading.Event) -> None:
        """Write until told to stop."""
        producer = Producer(self._connection.client(**{"enable.idempotence": True, "linger.ms": 5}))
        began, retired = time.monotonic(), time.monotonic()
        while not over.is_set():
            for _ in range(self._rate // 50):
                self._one(producer)
            producer.poll(0)
            if time.monotonic() - retired > RETIRES_EVERY:
                retired = time.monotonic()
                self._retire()
            over.wait(max(0.0, self.records / self._rate - (time.monotonic() - began)))
        assert producer.flush(60) == 0

    def _one(self, producer: Producer) -> None:
        key, self.records = self._random.choice(self._hot), self.records + 1
        value = None if self._random.random() < 0.1 else b"%d" % self.records * 8
        home = partitioner_named("murmur2").partition(key, self._move.source_partitions)
        producer.produce(self._move.source, value, key, home)

    def _retire(self) -> None:
        self._random.shuffle(self._hot)
        left = self._hot[: HOT // 10]
        self.retired += left
        self._hot[: HOT // 10] = [b"key-%d" % (self._made + n) for n in range(HOT // 10)]
        self._made += HOT // 10


def follow(connection: KafkaConnection, plan: Plan, over: threading.Event) -> None:
    """Copy as the tasks of catch_up do, until told to stop."""
    worker = CopyWorker(connection, plan, units_of(plan.moves), LIVE)
    try:
        worker.begin()
        worker.announce("busy")
        while not over.is_set():
            worker.step(0.05)
    finally:
        worker.close()


@contextmanager
def busy(
    connection: KafkaConnection, plan: Plan, seed: int = 1, rate: int = 4_000
) -> Iterator[Mapping[str, BusyBlue]]:
    """Write and copy every store of a plan during the block.

    :param rate: records of each store per second. The copy shares a process with the writers. If it falls behind
        so far that it may have missed deletions, it ends.
    """
    over = threading.Event()
    blues = {m.store: BusyBlue(connection, m, seed + n, rate) for n, m in enumerate(plan.changelogs)}
    failures: list[BaseException] = []

    def kept(work: object, *arguments: object) -> None:
        try:
            work(*arguments)  # type: ignore[operator]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=kept, args=(blue.write, over)) for blue in blues.values()]
    threads.append(threading.Thread(target=kept, args=(follow, connection, plan, over)))
    for thread in threads:
        thread.start()
    try:
        yield blues
    finally:
        over.set()
        for thread in threads:
            thread.join(120)
        if failures:
            # Also if the block has failed: then this may be why.
            raise failures[0]
