"""Producers of an input that grows. They place keys by linear hashing, and learn of new partitions."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Producer
from kafka_rescale.core.partitioning.linear_hashing import LinearHashing
from kafka_rescale.kafka.client.connection import KafkaConnection

from tests.support.processing.growing import INITIAL
from tests.support.processing.killed import SECONDS, processes

T0 = 1_700_000_000_000


def write(connection: KafkaConnection, topic: str, partitions: int, numbers: range) -> None:
    """Write numbered records of 60 keys as a producer that knows so many partitions.

    Each of 8 partitions would have some of the keys.
    """
    # Idempotent: the producer retries a partition without a leader, and records in flight must not overtake.
    producer = Producer(connection.client(**{"linger.ms": 5, "enable.idempotence": True}))
    hashing = LinearHashing(INITIAL)
    for number in numbers:
        key = b"d%d" % (number % 60)
        at = T0 + 10 * number + (number * 7919) % 3_000
        producer.produce(topic, b"%d" % number, key, hashing.partition(key, partitions), timestamp=at)
    assert producer.flush(30) == 0


def produce(
    connection: KafkaConnection,
    topics: tuple[str, str],
    name: str,
    stop: Any,
    sent: Any,
    max_age: float = 0.5,
    per_second: int = 400,
) -> None:
    """Write the same records to two topics until told to stop. Times go back and forth, and keys recur.

    The producer places keys by linear hashing over the partitions that it knows, and asks for them once in
    ``max_age`` seconds. Before it uses new partitions, everything that it sent before is acknowledged (KIP-253).
    """
    producer = Producer(connection.client(**{"linger.ms": 5, "enable.idempotence": True}))
    chance, number, asked = random.Random(name), 0, 0.0
    hashing, counts = LinearHashing(INITIAL), dict.fromkeys(topics, 0)
    while not stop.is_set():
        if time.monotonic() - asked > max_age:
            for topic in topics:
                known = len(producer.list_topics(topic, 10).topics[topic].partitions)
                if known != counts[topic]:
                    assert producer.flush(30) == 0
                    counts[topic] = known
            asked = time.monotonic()
        for _ in range(20):
            key, value = b"%s%d" % (name.encode(), chance.randrange(60)), b"%d" % number
            timestamp = T0 + 10 * number + chance.randrange(-5_000, 5_000) + 10_000
            for topic in topics:
                partition = hashing.partition(key, counts[topic])
                producer.produce(topic, value, key, partition, timestamp=timestamp)
            number += 1
        producer.poll(0)
        time.sleep(20 / per_second)
    assert producer.flush(30) == 0
    sent.value = number


@contextmanager
def under_load(connection: KafkaConnection, topics: tuple[str, str], per_second: int = 400) -> Iterator[list[int]]:
    """Let two producers work during the block. Then the list says how many records each has sent to each topic.

    :param per_second: records of each producer to each topic.
    """
    stop, sent = processes.Event(), [processes.Value("i", 0) for _ in range(2)]
    at_work = [
        processes.Process(
            target=produce, args=(connection, topics, name, stop, count, 0.5, per_second), daemon=True
        )
        for name, count in zip("ab", sent, strict=True)
    ]
    for process in at_work:
        process.start()
    counted: list[int] = []
    try:
        yield counted
    finally:
        stop.set()
        for process in at_work:
            process.join(SECONDS)
    assert [process.exitcode for process in at_work] == [0, 0]
    counted += [count.value for count in sent]
