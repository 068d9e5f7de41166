"""Measures by Kafka Streams' own log how fast it restores a changelog into its local store."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from benchmarks.contestants import Timing
from testbed.jars import ensure_demo_classes, ensure_jars, require_java
from testbed.processes import end_process, end_with_parent, wait_until

START_SECONDS = 600
THREADS = 2

_LOGGER = "org.slf4j.simpleLogger"
_READER = "org.apache.kafka.streams.processor.internals.StoreChangelogReader"
# The program's own lines, and the line that Kafka Streams logs when it begins to restore a changelog.
_STAMP = r"^(\d{4}-\d\d-\d\dT[\d:]+\.\d+)\S* "
_BEGUN = re.compile(_STAMP + r".*End offset for changelog", re.MULTILINE)
_RESTORED = re.compile(_STAMP + r"restored (\d+) records of", re.MULTILINE)
_STARTED = re.compile(_STAMP + r"state CREATED -> REBALANCING", re.MULTILINE)
_RUNNING = re.compile(_STAMP + r"state REBALANCING -> RUNNING", re.MULTILINE)


def restore(connection: KafkaConnection, application_id: str, directory: Path, records: int) -> Timing:
    """Start the flights application with an empty state directory, and stop it when it is running.

    :param records: number of records that it must have restored.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with _running(connection, application_id, directory) as log:
        wait_until(lambda: _RUNNING.search(log.read_text()), timeout=START_SECONDS, what="RUNNING")
        text = log.read_text()
    # Otherwise the next start would wait for the session timeout of the stopped member.
    ClusterAdmin(connection).remove_members(application_id)
    restored = [(_time(found[1]), int(found[2])) for found in _RESTORED.finditer(text)]
    assert sum(count for _, count in restored) == records, f"restored {restored}, expected {records}"
    begun = min((_time(found[1]) for found in _BEGUN.finditer(text)), default=0.0)
    until = max((at for at, _ in restored), default=begun)
    started, running = _STARTED.search(text), _RUNNING.search(text)
    assert started is not None
    assert running is not None
    return Timing(until - begun, _time(running[1]) - _time(started[1]) - (until - begun))


@contextmanager
def _running(connection: KafkaConnection, application_id: str, directory: Path) -> Iterator[Path]:
    """Run it with the JVM's default compiler settings. Those of the demo favour a fast start."""
    options = {
        f"-D{_LOGGER}.defaultLogLevel": "warn",
        f"-D{_LOGGER}.log.{_READER}": "info",
        f"-D{_LOGGER}.showDateTime": "true",
        f"-D{_LOGGER}.dateTimeFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSX",
    }
    arguments = {
        "--application-id": application_id,
        "--bootstrap-servers": connection.config["bootstrap.servers"],
        "--state-dir": str(directory / "state"),
        "--threads": str(THREADS),
    }
    class_path = f"{ensure_demo_classes()}:{ensure_jars('kafka')}/*"
    command = [require_java(), "-Xmx1g", "-Duser.timezone=UTC", *(f"{k}={v}" for k, v in options.items())]
    command += ["-cp", class_path, "FlightsApplication", *(w for pair in arguments.items() for w in pair)]
    log = directory / "application.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    watchdog = end_with_parent(process.pid)
    try:
        yield log
    finally:
        end_process(process.pid)
        process.wait()
        watchdog.kill()
        watchdog.wait()


def _time(text: str) -> float:
    """Return seconds since the epoch. The program writes nanoseconds, and Kafka Streams milliseconds."""
    whole, _, fraction = text.partition(".")
    return datetime.fromisoformat(whole + "+00:00").timestamp() + float(f"0.{fraction}")
