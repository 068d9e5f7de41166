"""An application that notices a lost, doubled or reordered record. Its producers never learn of new partitions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.processes import wait_until
from tests.support.links import DESCRIPTION, PACKAGE, PROGRAM

NAME, OLD, SEEN = "ordered", "orders", "seen"
BEFORE, AFTER = 4, 8
PRODUCERS, KEYS = 8, 40
PAUSE_SECONDS = 0.1
"""Between two records of a producer. With a fifth of it, their requests are most of a broker's load."""
# The clients' defaults, except that they never refresh metadata: so they never learn of new partitions.
IGNORANT = {"topic.metadata.refresh.interval.ms": -1, "partitioner": "murmur2_random", "enable.idempotence": True}


@dataclass
class Ordered:
    """The application, its producers, and a consumer of its output.

    :param directory: application file, process ids, logs, state.
    :param silent_seconds: the bridge ends after so many seconds without a record.
    """

    directory: Path
    servers: str
    silent_seconds: int = 4
    sent: Counter[str] = field(default_factory=Counter)
    seen: dict[str, list[int]] = field(default_factory=dict)
    longest_gap_seconds: float = 0.0
    _stop_sending: threading.Event = field(default_factory=threading.Event)
    _stop_watching: threading.Event = field(default_factory=threading.Event)
    _grow: threading.Event = field(default_factory=threading.Event)

    @property
    def client(self) -> dict[str, str]:
        """Properties of an ordinary client."""
        return {"bootstrap.servers": self.servers}

    @property
    def file(self) -> Path:
        """The application file."""
        return self.directory / f"{NAME}.yaml"

    def prepare(self) -> None:
        """Create topics and the application file."""
        self.directory.mkdir(parents=True)
        admin = ClusterAdmin(KafkaConnection(self.client))
        admin.ensure_topic(OLD, BEFORE, 1, {"retention.ms": "86400000", "max.message.bytes": "2000000"})
        admin.ensure_topic(SEEN, BEFORE, 1, {})
        links = {NAME: {"input": OLD, "output": SEEN, "does": "order"}}
        (self.directory / "links.json").write_text(json.dumps({"servers": self.servers, "links": links}))
        command = f"env PYTHONPATH={PACKAGE} {sys.executable} {PROGRAM}"
        declared = {
            "application_id": NAME,
            "partitions": AFTER,
            "inputs": [
                {
                    "topic": OLD,
                    "policy": "repartitioned",
                    "silent_seconds": self.silent_seconds,
                    "isolation_level": "read_committed",
                }
            ],
            "outputs": [{"topic": SEEN}],
            "topology": DESCRIPTION.format(input=OLD, output=SEEN),
            "stores": [{"name": "values", "type": "timestamped-key-value"}],
            "lifecycle": {
                "type": "shell",
                "start": f"{command} start {{application_id}} {{input:{OLD}}}",
                "stop": f"{command} stop {{application_id}}",
                "status": f"{command} status {{application_id}}",
            },
        }
        self.file.write_text(yaml.safe_dump(declared, sort_keys=False))

    def run(self, command: str, application_id: str) -> int:
        """Run a lifecycle command by hand and return its exit code."""
        environment = {**os.environ, "PYTHONPATH": PACKAGE, "LINKS": str(self.directory)}
        words = [sys.executable, str(PROGRAM), command, application_id]
        return subprocess.run(words, env=environment, check=False).returncode

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Let producers send, and a consumer watch the output, until the end of the block."""
        threads = [threading.Thread(target=target, daemon=True) for target in (self._produce, self._watch)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop_sending.set()
            self._stop_watching.set()
            for thread in threads:
                thread.join(60)

    @contextmanager
    def live(self) -> Iterator[None]:
        """The application at work beside its producers.

        At the end of the block, both of its generations are stopped.
        """
        try:
            with self.at_work():
                assert self.run("start", NAME) == 0
                wait_until(lambda: self.seen, timeout=120, what="the first output")
                yield
        finally:
            for application_id in (NAME, f"{NAME}-g2"):
                self.run("stop", application_id)

    def stop_sending(self) -> None:
        """Let the producers stop for good."""
        self._stop_sending.set()

    @property
    def is_all_seen(self) -> bool:
        """Whether the producers have stopped, and there are as many outputs as sent records."""
        return self._stop_sending.is_set() and sum(map(len, self.seen.values())) >= sum(self.sent.values())

    def wrong(self) -> dict[str, list[int]]:
        """Return the outputs of each key whose outputs are not 0, 1, 2, … up to the last number sent."""
        keys = {*self.sent, *self.seen}
        return {k: self.seen.get(k, []) for k in keys if self.seen.get(k) != list(range(self.sent[k]))}

    def grow_by_hand(self) -> None:
        """Grow the input, and replace the producers by new ones, which know the new partitions."""
        self._grow.set()
        wait_until(lambda: not self._grow.is_set(), timeout=60, what="the growth")

    def _produce(self) -> None:
        while not self._stop_sending.is_set():
            producers = [Producer({**self.client, **IGNORANT}) for _ in range(PRODUCERS)]
            number = 0
            while not (self._grow.is_set() or self._stop_sending.wait(PAUSE_SECONDS)):
                self._send_one_each(producers, number % KEYS)
                number += 1
            for producer in producers:
                assert producer.flush(60) == 0
            if self._grow.is_set():
                ClusterAdmin(KafkaConnection(self.client)).grow_topic(OLD, AFTER)
                self._grow.clear()

    def _send_one_each(self, producers: list[Producer], number: int) -> None:
        for index, producer in enumerate(producers):
            key = f"{index}-{number}"
            producer.produce(OLD, self.sent[key].to_bytes(8, "big"), key)
            self.sent[key] += 1
            producer.poll(0)

    def _watch(self) -> None:
        settings = {"group.id": "watch", "isolation.level": "read_committed", "fetch.wait.max.ms": 100}
        consumer = Consumer({**self.client, **settings})
        consumer.assign([TopicPartition(SEEN, p, 0) for p in range(BEFORE)])
        last = 0.0
        while not self._stop_watching.is_set():
            for message in consumer.consume(1_000, 0.05):
                key, value = message.key(), message.value()
                assert isinstance(key, bytes), message.error()
                assert isinstance(value, bytes)
                self.seen.setdefault(key.decode(), []).append(int.from_bytes(value, "big", signed=True))
                if last and not self._stop_sending.is_set():
                    self.longest_gap_seconds = max(self.longest_gap_seconds, time.monotonic() - last)
                last = time.monotonic()
        consumer.close()
