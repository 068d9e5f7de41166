"""A producer that writes words in the background, and knows what it has written."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Producer
from kafka_rescale.kafka.client.connection import KafkaConnection

PARTITIONS = 2
WORDS = [b"word-%02d" % number for number in range(17)]


@dataclass
class Load:
    """A producer that writes words all the time, and knows how often it has written each word."""

    connection: KafkaConnection
    topic: str
    per_second: int
    written: Counter[bytes] = field(default_factory=Counter)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write until the block ends. Then everything has arrived."""
        done = threading.Event()
        thread = threading.Thread(target=self._write, args=(done,))
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _write(self, done: threading.Event) -> None:
        producer, chance = Producer(self.connection.client(**{"linger.ms": 5})), random.Random(1)
        began, number = time.monotonic(), 0
        while not done.wait(0.05):
            while number < (time.monotonic() - began) * self.per_second:
                word = chance.choice(WORDS)
                producer.produce(self.topic, word, None, number % PARTITIONS, timestamp=1_700_000_000_000 + number)
                self.written[word] += 1
                number += 1
            # Without a poll, records that have arrived stay in its queue, which is full after 100,000 records.
            producer.poll(0)
        assert producer.flush(60) == 0
