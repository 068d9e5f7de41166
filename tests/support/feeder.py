"""The input of the test applications of ``jvm/tests``, sent in the background."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import Producer
from kafka_rescale.core.partitioning.partitioners import Murmur2
from kafka_rescale.kafka.client.waiting import now_ms

INPUT_PARTITIONS = 4
KEYS, FOREIGN_KEYS = 200, 40
STEP_MS = 50
FLUSH_KEYS = 80
FLUSH_AFTER_MS = 2 * 3_600_000


@dataclass
class Feeder:
    """Sends a fixed sequence of records: some at once, some slowly in the background, the rest when told to.

    It never learns of added partitions. So a key's records stay in one partition, and in order.

    :param total: number of all records. They alternate between the inputs.
    :param since: timestamp of the first record, ms.
    """

    client: Mapping[str, str]
    inputs: tuple[str, ...]
    total: int
    since: int = field(default_factory=lambda: now_ms() - 3 * 3_600_000)
    sent: int = 0
    _hurry: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def begin(self, preload: int, rate: float) -> None:
        """Send ``preload`` records, then go on in the background with ``rate`` records per second."""
        self._producer = Producer({**self.client, "linger.ms": 5})
        self._send(preload)
        self._thread = threading.Thread(target=self._go_on, args=(rate,), name="feeder", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Send the rest at once."""
        self._hurry.set()
        assert self._thread is not None
        self._thread.join(120)
        assert self.sent == self.total

    def flush_windows(self) -> None:
        """Send records whose time is hours later, with keys for every partition, so that all windows close."""
        for topic in self.inputs:
            for n in range(FLUSH_KEYS):
                value = self._value(topic, n, f"flush-{n}")
                self._produce(topic, f"flush-{n}", value, self.since + FLUSH_AFTER_MS, n)
        assert self._producer.flush(30) == 0

    def _go_on(self, rate: float) -> None:
        while self.sent < self.total:
            self._send(1)
            if self._hurry.wait(1 / rate):
                self._send(self.total - self.sent)

    def _send(self, count: int) -> None:
        for number in range(self.sent, self.sent + count):
            topic = self.inputs[number % len(self.inputs)]
            turn = number // len(self.inputs)
            key, value = self._record(topic, turn)
            self._produce(topic, key, value, self.since + number * STEP_MS, number)
        assert self._producer.flush(60) == 0
        self.sent += count

    def _produce(self, topic: str, key: str, value: str, timestamp: int, number: int) -> None:
        headers = [("trace", b"%d" % number), ("c", b"mine"), ("empty", None)]
        partition = self._partition(topic, key.encode())
        self._producer.produce(
            topic, value.encode(), key.encode(), partition, timestamp=timestamp, headers=headers
        )
        self._producer.poll(0)

    def _partition(self, topic: str, key: bytes) -> int:
        return Murmur2().partition(key, INPUT_PARTITIONS)

    def _record(self, topic: str, turn: int) -> tuple[str, str]:
        return _record(topic, turn)

    @staticmethod
    def _value(topic: str, number: int, key: str) -> str:
        return f"{key}|{number}" if topic == "left" else f"{number}"


def _record(topic: str, turn: int) -> tuple[str, str]:
    """Return the key and value of a turn: a third of the keys is on both sides of a join by key.

    Every 29th value deletes.
    """
    if topic == "left":
        key = turn * 7 % KEYS
        foreign = turn * 11 % (FOREIGN_KEYS + 1)
        # A deletion beside a value without a foreign key is a race that Kafka Streams may lose.
        if any((turn + step) % 29 == 28 for step in (-KEYS, KEYS)):
            foreign %= FOREIGN_KEYS
        value = f"{_right_key(foreign) if foreign < FOREIGN_KEYS else ''}|left {turn}"
        return f"key-{key}", "-" if turn % 29 == 28 else value
    return _right_key(turn * 3 % FOREIGN_KEYS), "-" if turn % 29 == 28 else f"right {turn}"


def _right_key(number: int) -> str:
    return f"key-{3 * number}"
