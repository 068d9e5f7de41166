"""A chain of three live applications over four topics, and the numbers that flow through it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from confluent_kafka import Producer
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.range_reader import read_ranges

from tests.support.hold import Hold

NAMES = ("up", "middle", "down")
KEYS = 397
TOPICS = ("raw", "sums", "peaks", "finals")
PROGRAM = Path(__file__).with_name("link.py")
ROOT = Path(__file__).resolve().parents[2]
PACKAGE = f"{ROOT / 'plugins'}:{ROOT}"
DESCRIPTION = """Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [{input}])
      --> KSTREAM-REDUCE-0000000001
    Processor: KSTREAM-REDUCE-0000000001 (stores: [values])
      --> KTABLE-TOSTREAM-0000000002
      <-- KSTREAM-SOURCE-0000000000
    Processor: KTABLE-TOSTREAM-0000000002 (stores: [])
      --> KSTREAM-SINK-0000000003
      <-- KSTREAM-REDUCE-0000000001
    Sink: KSTREAM-SINK-0000000003 (topic: {output})
      <-- KTABLE-TOSTREAM-0000000002
"""


@dataclass
class Links:
    """The chain: ``up`` sums what is sent to ``raw``. ``middle`` and ``down`` keep the largest sum of every key.

    :param directory: application files, process ids, logs, state.
    """

    directory: Path
    servers: str
    sent: Counter[str] = field(default_factory=Counter)
    _ended: threading.Event = field(default_factory=threading.Event)

    @property
    def _hold(self) -> Hold:
        return Hold(self.directory, self._ended)

    @property
    def connection(self) -> KafkaConnection:
        """The cluster."""
        return KafkaConnection({"bootstrap.servers": self.servers})

    @property
    def environment(self) -> dict[str, str]:
        """The environment that lifecycle commands need."""
        return {"LINKS": str(self.directory), "KAFKA_RESCALE_APPLICATIONS": str(self.directory / "applications")}

    def prepare(self) -> None:
        """Create topics and application files."""
        admin = ClusterAdmin(self.connection)
        for topic in TOPICS:
            admin.ensure_topic(topic, 4, 1, {})
        applications = self.directory / "applications"
        applications.mkdir(parents=True)
        does = {name: "sum" if name == "up" else "max" for name in NAMES}
        links = {n: {"input": TOPICS[i], "output": TOPICS[i + 1], "does": does[n]} for i, n in enumerate(NAMES)}
        (self.directory / "links.json").write_text(json.dumps({"servers": self.servers, "links": links}))
        for index, name in enumerate(NAMES):
            declared = self._declared(index, name)
            (applications / f"{name}.yaml").write_text(yaml.safe_dump(declared, sort_keys=False))

    def _declared(self, index: int, name: str) -> dict[str, object]:
        command = f"env PYTHONPATH={PACKAGE} {sys.executable} {PROGRAM}"
        producers = {"application": NAMES[index - 1]} if index else self._hold.commands
        return {
            "application_id": name,
            "chain": "links",
            "partitions": 8,
            "inputs": [{"topic": TOPICS[index], "policy": "paused", "producers": producers}],
            "outputs": [{"topic": TOPICS[index + 1]}],
            "topology": DESCRIPTION.format(input=TOPICS[index], output=TOPICS[index + 1]),
            "stores": [{"name": "values", "type": "timestamped-key-value"}],
            "lifecycle": {
                "type": "shell",
                **{c: f"{command} {c} {{application_id}}" for c in ("start", "stop", "status")},
            },
        }

    def run(self, command: str, application_id: str) -> int:
        """Run a lifecycle command and return its exit code."""
        environment = {**os.environ, "PYTHONPATH": PACKAGE, **self.environment}
        words = [sys.executable, str(PROGRAM), command, application_id]
        return subprocess.run(words, env=environment, check=False).returncode

    def produce(self) -> None:
        """Send the value 1 for all keys in turn until ``end``, except while producers are held."""
        number = 0
        while not self._ended.is_set():
            # Producers restart after a hold, because the held client does not know the partitions that were added.
            producer = Producer({"bootstrap.servers": self.servers, "partitioner": "murmur2_random"})
            while not self._hold.is_asked(within=0.01):
                for _ in range(5):
                    key = f"key-{number % KEYS}"
                    producer.produce("raw", (1).to_bytes(8, "big"), key)
                    self.sent[key] += 1
                    number += 1
                producer.poll(0)
            producer.flush()
            self._hold.until_released()

    def end(self) -> None:
        """Let ``produce`` end."""
        self._ended.set()

    def finals(self) -> dict[str, int]:
        """Return the largest value of every key in the last topic."""
        admin = ClusterAdmin(self.connection)
        begins, ends = (read(["finals"])["finals"] for read in (admin.begin_offsets, admin.end_offsets))
        found: dict[str, int] = {}
        for record in read_ranges(self.connection, "finals", {p: (begins[p], ends[p]) for p in ends}):
            key, value = record.key(), record.value()
            assert isinstance(key, bytes)
            assert isinstance(value, bytes)
            found[key.decode()] = max(found.get(key.decode(), 0), int.from_bytes(value, "big"))
        return found
