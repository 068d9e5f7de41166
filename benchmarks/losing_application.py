"""A small application with exactly-once, whose instances come and go while a feed numbers its input records."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.jars import ensure_gate_jar
from testbed.processes import wait_until
from tests.support.streams_member import StreamsMember, launch

APPLICATION, INPUT, QUIET, OUTPUT = "shop", "orders", "orders-quiet", "orders-counts"
PROGRAM = "QuietWindowsMember"
LOG = {"showDateTime": "true", "dateTimeFormat": "HH:mm:ss.SSS"}
JVM = (
    *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *(f"-Dorg.slf4j.simpleLogger.{name}={value}" for name, value in LOG.items()),
)
GUARANTEE = {"processing.guarantee": "exactly_once_v2"}
SHORT_SESSION = {"session.timeout.ms": "6000"}
"""The shortest that brokers allow: a rebalance follows soon when an instance is gone."""
SHORT_SESSION_OF_BROKER = {
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.session.timeout.ms": "6000",
}
"""The same for the streams protocol, whose clients can't set it."""

TICK_SECONDS = 0.02
DRAIN_SECONDS = 120

_CORRUPTED = re.compile(r"Detected the states of tasks \[([^\]]*)\] are corrupted")
_FENCED = re.compile(r"Detected that the thread is being fenced")


@dataclass
class Feed:
    """Sends records with the keys ``0``, ``1``, ``2`` and so on, at a rate per second, until it is stopped."""

    servers: str
    partitions: int
    rate: float
    sent: int = 0
    _stopped: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Send within the block. At its end, every record has arrived."""
        thread = threading.Thread(target=self._send, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    def _send(self) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5})
        began = time.monotonic()
        while not self._stopped.wait(TICK_SECONDS):
            for number in range(self.sent, int((time.monotonic() - began) * self.rate)):
                producer.produce(INPUT, b"v", b"%d" % number, partition=number % self.partitions)
                self.sent = number + 1
            producer.poll(0)
        assert producer.flush(60) == 0, "records of the feed did not arrive"


@dataclass
class LosingApplication:
    """The instances of the application, each with a directory of its own for its state and its log.

    :param settings: of Kafka Streams, on top of :data:`GUARANTEE`.
    :param keeps_state: whether an instance that comes back has its local state.
    """

    servers: str
    directory: Path
    settings: Mapping[str, str]
    keeps_state: bool
    instances: dict[int, StreamsMember] = field(default_factory=dict)
    starts: int = 0

    def __post_init__(self) -> None:
        self.admin = ClusterAdmin(KafkaConnection({"bootstrap.servers": self.servers, "log_level": "0"}))

    def create_topics(self, partitions: int) -> None:
        """Create the inputs and the output."""
        client = AdminClient({"bootstrap.servers": self.servers})
        for made in client.create_topics([NewTopic(t, partitions, 1) for t in (INPUT, QUIET, OUTPUT)]).values():
            made.result(30)

    def fill_windows(self, partitions: int, records: int) -> None:
        """Send records to the quiet input, so that every store of windows has a segment."""
        producer = Producer({"bootstrap.servers": self.servers})
        for number in range(records):
            producer.produce(QUIET, b"v", b"%d" % number, partition=number % partitions)
            producer.poll(0)
        assert producer.flush(60) == 0, "records for the windows did not arrive"

    def start(self, number: int) -> None:
        """Start an instance."""
        directory = self._directory(number)
        if not self.keeps_state:
            shutil.rmtree(directory / APPLICATION, ignore_errors=True)
        session = {} if "group.protocol" in self.settings else SHORT_SESSION
        settings = {**GUARANTEE, **session, **self.settings}
        self.instances[number] = launch(
            self.servers, APPLICATION, INPUT, directory, settings, PROGRAM, [ensure_gate_jar()], JVM
        )
        self.starts += 1

    def await_running(self) -> None:
        """Return when all instances have said that they are running."""
        for instance in self.instances.values():
            instance.await_state("RUNNING")

    def stop(self, number: int) -> None:
        """Let an instance close cleanly."""
        self.instances.pop(number).close()

    def stop_all(self) -> None:
        """Let all instances close, and make the group forget its members, as if the session timeout were over."""
        for number in list(self.instances):
            self.stop(number)
        self.admin.remove_members(APPLICATION)

    def kill_all(self) -> None:
        """End all instances without warning."""
        for instance in self.instances.values():
            instance.kill()

    def drain(self) -> None:
        """Return when the application has committed the end of its input."""
        ends = dict(self.admin.end_offsets([INPUT])[INPUT])

        def drained() -> bool:
            committed = self.admin.committed(APPLICATION)
            return all(committed.get(INPUT, {}).get(p) == end for p, end in ends.items())

        wait_until(drained, timeout=DRAIN_SECONDS, what=f"group {APPLICATION} at {ends}")

    def corrupted_tasks(self) -> int:
        """Return the number of tasks that stream threads have declared corrupted."""
        return sum(len(tasks.split(",")) for tasks in _CORRUPTED.findall(self._logs()))

    def fenced_threads(self) -> int:
        """Return how often a stream thread has given up all of its tasks because its producer was fenced."""
        return len(_FENCED.findall(self._logs()))

    def _logs(self) -> str:
        return "".join(log.read_text() for log in sorted(self.directory.glob("instance-*/log")))

    def _directory(self, number: int) -> Path:
        return self.directory / f"instance-{number}"
