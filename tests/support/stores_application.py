"""The test applications of ``jvm/tests``, one per store type: their file, life cycle and live input."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Producer
from kafka_rescale.core.partitioners import Murmur2
from kafka_rescale.core.topology import internal_topic
from kafka_rescale.core.topology_describe import parse_describe
from kafka_rescale.embedded.jars import require_java
from kafka_rescale.embedded.processes import end_process, end_with_parent, is_running
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.remaining import has_records
from kafka_rescale.kafka.waiting import now_ms, wait_until
from kafka_rescale.lifecycle.instance import Instance

from tests.support.jvm_tests import class_path

INPUT_PARTITIONS = 4
KEYS, FOREIGN_KEYS = 200, 40
STEP_MS = 50
FLUSH_KEYS = 80
FLUSH_AFTER_MS = 2 * 3_600_000

STORES: dict[str, dict[str, str]] = {
    "versioned": {"versions": "versioned"},
    "inner-join": {"joined-this-join-store": "join-window", "joined-other-join-store": "join-window"},
    "left-join": {
        "joined-this-join-store": "join-window",
        "joined-outer-other-join-store": "join-window",
        "joined-left-shared-join-store": "outer-join",
    },
    "outer-join": {
        "joined-outer-this-join-store": "join-window",
        "joined-outer-other-join-store": "join-window",
        "joined-outer-shared-join-store": "outer-join",
    },
    "foreign-key": {
        "left-table": "timestamped-key-value",
        "joined": "timestamped-key-value",
        "right-table": "timestamped-key-value",
        "fk-subscription-store": "foreign-key-subscription",
    },
    "final-window": {"counts": "timestamped-window"},
    "suppress-window": {"counts": "timestamped-window", "suppressed-store": "suppress-window"},
    "suppress-session": {"counts": "session", "suppressed-store": "suppress-session"},
    "suppress": {"counts": "timestamped-key-value", "suppressed-store": "suppress"},
    "processor": {"buckets": "processor"},
    "plain": {"totals": "key-value", "windows": "window"},
    "headers": {"latest": "timestamped-key-value"},
    "grace": {"right-table": "versioned", "grace-Buffer": "timestamped-key-value"},
}
"""Store types by store, per application."""

STORES["foreign-key-left"] = STORES["foreign-key"]
BOTH_INPUTS = {"inner-join", "left-join", "outer-join", "foreign-key", "foreign-key-left", "grace"}


@dataclass
class StoresApplication:
    """One application on one broker, whose state lies behind repartition topics.

    :param store: what the application keeps, a key of ``STORES``.
    :param directory: local state, process ids and logs.
    :param isolation: with which it reads; exactly once it is ``read_committed`` whatever is asked for.
    """

    store: str
    directory: Path
    bootstrap_servers: str
    guarantee: str = "at_least_once"
    protocol: str = "classic"
    isolation: str = "read_uncommitted"

    @property
    def inputs(self) -> tuple[str, ...]:
        """Its input topics."""
        return ("left", "right") if self.store in BOTH_INPUTS else ("left",)

    @property
    def connection(self) -> KafkaConnection:
        """The cluster."""
        return KafkaConnection({"bootstrap.servers": self.bootstrap_servers})

    def command(self, application_id: str, partitions: int, *more: str) -> list[str]:
        """Return the command line of an instance."""
        options = {
            "store": self.store,
            "application-id": application_id,
            "bootstrap-servers": self.bootstrap_servers,
            "state-dir": str(self.directory / "state"),
            "guarantee": self.guarantee,
            "protocol": self.protocol,
            "isolation-level": self.isolation,
            "partitions": str(partitions),
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        java = [require_java(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
        java += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", class_path(), "StoresApplication"]
        return [*java, *words, *more]

    def describe(self) -> str:
        """Return what ``Topology#describe()`` prints; the counts of its repartition topics are not in it."""
        command = self.command("any", 1, "--describe", "yes")
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def write_file(self, partitions: int, **changes: Any) -> Path:
        """Write the application file with some fields changed, and return its path."""
        types = STORES[self.store]
        fields: dict[str, Any] = {
            "application_id": "stores",
            "partitions": partitions,
            "inputs": [{"topic": t, "policy": "fixed"} for t in self.inputs],
            "repartitions": [{"name": f"by-{t}", "count": "start_command"} for t in self.inputs],
            "topology": self.describe(),
            "stores": [{"name": name, "type": kind, **_extractor(kind)} for name, kind in types.items()],
            "lifecycle": {"type": "python", "callable": f"{__name__}:StoresLifecycle"},
            **changes,
        }
        file = self.directory / "stores.yaml"
        file.write_text(yaml.safe_dump(fields, sort_keys=False))
        return file

    def start(self, application_id: str, partitions: int, *more: str) -> None:
        """Launch an instance; a watchdog ends it with this process."""
        pid_file = self.directory / f"{application_id}.pid"
        with (self.directory / f"{application_id}.log").open("ab") as log:
            process = subprocess.Popen(
                self.command(application_id, partitions, *more),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        end_with_parent(process.pid)
        pid_file.write_text(str(process.pid))

    def stop(self, application_id: str) -> None:
        """End an instance cleanly."""
        pid = self._pid(application_id)
        if pid:
            assert end_process(pid, marker=application_id, timeout=60), self.log_of(application_id)

    def runs(self, application_id: str) -> bool:
        """Return whether an instance runs."""
        pid = self._pid(application_id)
        return bool(pid) and is_running(pid, marker=f"{application_id} ")

    def log_of(self, application_id: str) -> str:
        """Return the end of an instance's log."""
        return (self.directory / f"{application_id}.log").read_text(errors="replace")[-4000:]

    def await_processed(
        self,
        application_id: str,
        seconds: float = 180,
        repartitions: Sequence[str] | None = None,
        inputs: Sequence[str] | None = None,
    ) -> None:
        """Return when nothing is left in the topics that an application reads.

        :param repartitions: the full names of its repartition topics, if they have another prefix.
        :param inputs: its input topics, if others have come in their place.
        """
        admin, topology = ClusterAdmin(self.connection), parse_describe(self.describe())
        if repartitions is None:
            repartitions = [internal_topic(application_id, t) for t in topology.repartitions]
        topics = [*(inputs or topology.inputs), *repartitions]

        def done() -> bool:
            ends, committed = admin.end_offsets(topics), admin.committed(application_id)
            return len(ends) == len(topics) and not any(
                has_records(self.connection, topic, p, committed.get(topic, {}).get(p), end)
                for topic, partitions in ends.items()
                for p, end in partitions.items()
            )

        # A record may be between two topics while both look processed. The ends are asked for first, so each look
        # proves one more step of a record's way.
        for _ in range(len(topology.subtopologies) + 1):
            wait_until(done, seconds=seconds, what=f"{application_id} to process its input", remedy="See its log.")
            time.sleep(0.5)

    def _pid(self, application_id: str) -> int:
        file = self.directory / f"{application_id}.pid"
        return int(file.read_text()) if file.exists() else 0


def _extractor(kind: str) -> dict[str, str]:
    return {"partitioning_key": "drop-last-4"} if kind == "processor" else {}


class StoresLifecycle:
    """Starts and stops what ```environment_of``` describes."""

    def start(self, instance: Instance) -> None:
        """Start it unless it runs, on the topics that have come in the place of its inputs."""
        if not self.is_running(instance):
            inputs = [word for name, topic in instance.inputs.items() for word in (f"--{name}", topic)]
            running_application().start(instance.application_id, instance.partitions, *inputs)

    def stop(self, instance: Instance) -> None:
        """Stop it cleanly."""
        running_application().stop(instance.application_id)

    def is_running(self, instance: Instance) -> bool:
        """Return whether its process runs."""
        return running_application().runs(instance.application_id)


def running_application() -> StoresApplication:
    """Return the one that ``environment_of`` describes."""
    store, directory, *rest = os.environ["STORES_APPLICATION"].split(";")
    return StoresApplication(store, Path(directory), *rest)


@contextmanager
def environment_of(application: StoresApplication) -> Iterator[None]:
    """Let lifecycles of this process find an application."""
    os.environ["STORES_APPLICATION"] = ";".join(str(value) for value in astuple(application))
    try:
        yield
    finally:
        del os.environ["STORES_APPLICATION"]


@dataclass
class Feeder:
    """Sends a fixed sequence of records: some at once, some slowly while others look on, the rest when told.

    It never learns of partitions that are added: a key's records stay in one, and in order.

    :param total: records in all, alternating between the inputs.
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
        """Send records of hours later with keys for every partition, so that all windows are closed."""
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
            key, value = _record(topic, turn)
            self._produce(topic, key, value, self.since + number * STEP_MS, number)
        assert self._producer.flush(60) == 0
        self.sent += count

    def _produce(self, topic: str, key: str, value: str, timestamp: int, number: int) -> None:
        headers = [("trace", b"%d" % number), ("c", b"mine"), ("empty", None)]
        partition = Murmur2().partition(key.encode(), INPUT_PARTITIONS)
        self._producer.produce(
            topic, value.encode(), key.encode(), partition, timestamp=timestamp, headers=headers
        )
        self._producer.poll(0)

    @staticmethod
    def _value(topic: str, number: int, key: str) -> str:
        return f"{key}|{number}" if topic == "left" else f"{number}"


def _record(topic: str, turn: int) -> tuple[str, str]:
    """A third of the keys is on both sides of a join by key; every 29th value deletes."""
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
