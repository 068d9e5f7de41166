"""The application that notices a lost, doubled or reordered record. Here it grows in place."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import yaml
from confluent_kafka import Producer
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from tests.support.hold import Hold
from tests.support.links import DESCRIPTION, PACKAGE, PROGRAM
from tests.support.ordered import BEFORE, KEYS, NAME, OLD, PAUSE_SECONDS, PRODUCERS, SEEN, Ordered

LINEAR = f"linear-hashing:{BEFORE}"
STATIC = "static:tests.support.user_partitioners:pinned"


@dataclass
class OrderedInPlace(Ordered):
    """Its producers can be held, and learn of a growth after a hold. When they have ended, they count as held.

    :param partitioner: the partitioner of the producers, as the application file names it.
    """

    partitioner: str = LINEAR

    @property
    def _hold(self) -> Hold:
        return Hold(self.directory, self._stop_sending)

    def prepare(self) -> None:
        """Create topics and the application file."""
        self.declare()
        admin = ClusterAdmin(KafkaConnection(self.client))
        for topic in (OLD, SEEN):
            admin.ensure_topic(topic, BEFORE, 1, {})
        links = {NAME: {"input": OLD, "output": SEEN, "does": "order"}}
        (self.directory / "links.json").write_text(json.dumps({"servers": self.servers, "links": links}))

    def declare(self) -> None:
        """Create the application file, for which no broker is needed."""
        self.directory.mkdir(parents=True, exist_ok=True)
        command = f"env PYTHONPATH={PACKAGE} {sys.executable} {PROGRAM}"
        declared = {
            "application_id": NAME,
            "mode": "in_place",
            "partitions": 6,
            "inputs": [
                {
                    "topic": OLD,
                    "policy": "paused",
                    "partitioner": self.partitioner,
                    "producers": self._hold.commands,
                }
            ],
            "outputs": [{"topic": SEEN}],
            "topology": DESCRIPTION.format(input=OLD, output=SEEN),
            "stores": [{"name": "values", "type": "timestamped-key-value", "partitioner": self.partitioner}],
            "lifecycle": {
                "type": "shell",
                **{c: f"{command} {c} {{application_id}}" for c in ("start", "stop", "status")},
            },
        }
        self.file.write_text(yaml.safe_dump(declared, sort_keys=False))

    def _produce(self) -> None:
        number = 0
        while not self._stop_sending.is_set():
            count = ClusterAdmin(KafkaConnection(self.client)).describe_topics([OLD])[OLD].partitions
            producer = Producer({**self.client, "enable.idempotence": True, "linger.ms": 5})
            while not self._hold.is_asked(within=PAUSE_SECONDS):
                for index in range(PRODUCERS):
                    self._send_one(producer, f"{index}-{number % KEYS}", count)
                number += 1
            assert producer.flush(60) == 0
            self._hold.until_released()
        self._hold.held.touch()

    def _send_one(self, producer: Producer, key: str, count: int) -> None:
        partition = partitioner_named(self.partitioner, OLD).partition(key.encode(), count)
        producer.produce(OLD, self.sent[key].to_bytes(8, "big"), key, partition)
        self.sent[key] += 1
        producer.poll(0)
