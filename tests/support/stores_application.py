"""The test applications of ``jvm/tests``, one per store type: their file, life cycle and live input."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import yaml
from kafka_rescale.core.topology.describe import parse_describe
from kafka_rescale.core.topology.topology import internal_topic
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import wait_until
from kafka_rescale.kafka.reading.remaining import with_records
from kafka_rescale.lifecycle.instance import Instance

from testbed.jars import require_java
from testbed.processes import end_process, end_with_parent, is_running
from tests.support.jvm_tests import class_path

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
"""The store type of each store, per application."""

STORES["foreign-key-left"] = STORES["foreign-key"]
STORES["joins"] = {**STORES["foreign-key"], "fk-joined": "timestamped-key-value"}
BOTH_INPUTS = {"inner-join", "left-join", "outer-join", "foreign-key", "foreign-key-left", "joins", "grace"}


@dataclass
class StoresApplication:
    """One application on one broker. Its state is behind repartition topics.

    :param store: kind of the application, a key of ``STORES``.
    :param directory: local state, process ids and logs.
    :param isolation: isolation level with which it reads. With exactly-once, it is always ``read_committed``.
    :param counts: counts of its repartition topics: ``enforced``, or ``derived`` from the inputs. ``inputs`` means
        that it has no repartition topics.
    :param pattern: the pattern that it reads instead of ``left``, if it is not empty.
    :param matching: the topics that the pattern matches, separated by commas.
    """

    store: str
    directory: Path
    bootstrap_servers: str
    guarantee: str = "at_least_once"
    protocol: str = "classic"
    isolation: str = "read_uncommitted"
    counts: str = "enforced"
    pattern: str = ""
    matching: str = ""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Its input topics."""
        if self.pattern:
            return tuple(self.matching.split(","))
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
            "counts": self.counts,
            "left-pattern": self.pattern,
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        java = [require_java(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
        java += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", class_path(), "StoresApplication"]
        return [*java, *words, *more]

    def describe(self) -> str:
        """Return the output of ``Topology#describe()``. It does not have the counts of repartition topics."""
        command = self.command("any", 1, "--describe", "yes")
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    @property
    def patterns(self) -> dict[str, list[str]]:
        """The matching topics by pattern. Without a pattern, it is empty."""
        return {self.pattern: list(self.inputs)} if self.pattern else {}

    def write_file(self, partitions: int, **changes: Any) -> Path:
        """Write the application file with some fields changed, and return its path."""
        types, sources = STORES[self.store], ("left",) if self.pattern else self.inputs
        fields: dict[str, Any] = {
            "application_id": "stores",
            "partitions": partitions,
            "inputs": [{"topic": t, "policy": "fixed"} for t in self.inputs],
            "source_patterns": self.patterns,
            "repartitions": [{"name": f"by-{t}", "count": "start_command"} for t in sources],
            "topology": self.describe(),
            "stores": [{"name": name, "type": kind, **_extractor(kind)} for name, kind in types.items()],
            "lifecycle": {"type": "python", "callable": f"{__name__}:StoresLifecycle"},
            **changes,
        }
        file = self.directory / "stores.yaml"
        file.write_text(yaml.safe_dump(fields, sort_keys=False))
        return file

    def start(self, application_id: str, partitions: int, *more: str) -> None:
        """Launch an instance. A watchdog ends it when this process ends."""
        end_with_parent(self.launch(application_id, partitions, *more))

    def launch(self, application_id: str, partitions: int, *more: str) -> int:
        """Launch an instance and return its process id. The instance outlives this process."""
        pid_file = self.directory / f"{application_id}.pid"
        with (self.directory / f"{application_id}.log").open("ab") as log:
            process = subprocess.Popen(
                self.command(application_id, partitions, *more),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        pid_file.write_text(str(process.pid))
        return process.pid

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
        """Wait until the application has processed everything in the topics that it reads.

        :param repartitions: full names of its repartition topics, if they have another prefix.
        :param inputs: its input topics, if other topics have replaced them.
        """
        admin, topology = ClusterAdmin(self.connection), parse_describe(self.describe(), self.patterns)
        if repartitions is None:
            repartitions = [internal_topic(application_id, t) for t in topology.repartitions]
        topics = [*(inputs or topology.inputs), *repartitions]

        def done() -> bool:
            ends, committed = admin.end_offsets(topics, if_present=True), admin.committed(application_id)
            ranges = {
                (topic, p): (committed.get(topic, {}).get(p), end)
                for topic, partitions in ends.items()
                for p, end in partitions.items()
            }
            return len(ends) == len(topics) and next(with_records(self.connection, ranges), None) is None

        # A record may be on its way between two topics while both look processed. Each look asks for the ends
        # first, so it proves one more step of a record's way.
        for _ in range(len(topology.subtopologies) + 1):
            wait_until(done, seconds=seconds, what=f"{application_id} to process its input", remedy="See its log.")
            time.sleep(0.5)

    def _pid(self, application_id: str) -> int:
        file = self.directory / f"{application_id}.pid"
        return int(file.read_text()) if file.exists() else 0


def _extractor(kind: str) -> dict[str, str]:
    return {"partitioning_key": "drop-last-4"} if kind == "processor" else {}


class LastingLifecycle:
    """Starts and stops the application of ``environment_of``.

    Its instances outlive this process, as in Airflow.
    """

    def start(self, instance: Instance) -> None:
        """Start it unless it runs. It reads the topics that have replaced its inputs."""
        if not self.is_running(instance):
            inputs = [word for name, topic in instance.inputs.items() for word in (f"--{name}", topic)]
            self._launch(running_application(), instance, inputs)

    def stop(self, instance: Instance) -> None:
        """Stop it cleanly."""
        running_application().stop(instance.application_id)

    def is_running(self, instance: Instance) -> bool:
        """Return whether its process runs."""
        return running_application().runs(instance.application_id)

    def _launch(self, application: StoresApplication, instance: Instance, inputs: Sequence[str]) -> None:
        application.launch(instance.application_id, instance.partitions, *inputs)


class StoresLifecycle(LastingLifecycle):
    """The same lifecycle for the process of a test. Its instances end with the process."""

    def _launch(self, application: StoresApplication, instance: Instance, inputs: Sequence[str]) -> None:
        application.start(instance.application_id, instance.partitions, *inputs)


def running_application() -> StoresApplication:
    """Return the application that ``environment_of`` describes."""
    store, directory, *rest = os.environ["STORES_APPLICATION"].split(";")
    return StoresApplication(store, Path(directory), *rest)


def variables_of(application: StoresApplication) -> dict[str, str]:
    """Return the environment in which lifecycles find an application."""
    return {"STORES_APPLICATION": ";".join(str(value) for value in astuple(application))}


@contextmanager
def environment_of(application: StoresApplication) -> Iterator[None]:
    """Let lifecycles of this process find an application."""
    os.environ.update(variables_of(application))
    try:
        yield
    finally:
        del os.environ["STORES_APPLICATION"]
