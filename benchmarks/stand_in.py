"""A stand-in for an application: it is a member of the group, reads the input, and does nothing else.

Run `python -m benchmarks.stand_in start APPLICATION_ID SERVERS TOPIC DIRECTORY`, or `stop` or `status` instead of
`start`. Kafka Streams with thousands of tasks would take most of the machine on which the expansion is measured.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

import psutil  # type: ignore[import-untyped]
from confluent_kafka import Consumer

from testbed.processes import wait_until

STOPPED = 3
STOP_SECONDS = 60


def main(command: str, application_id: str, servers: str, topic: str, directory: str) -> int:
    """Run one command. The exit code of ``status`` is 3 if the stand-in does not run."""
    file = Path(directory) / f"{application_id}.pid"
    process = _running(file)
    if command == "start" and process is None:
        line = [sys.executable, "-m", "benchmarks.stand_in", "run", application_id, servers, topic, directory]
        # If the child kept a pipe of the lifecycle open, the lifecycle would wait for it.
        nothing = subprocess.DEVNULL
        started = subprocess.Popen(line, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
        file.write_text(str(started.pid))
    elif command == "stop" and process is not None:
        process.terminate()
        wait_until(lambda: _running(file) is None, timeout=STOP_SECONDS, what=f"{application_id} to end")
    elif command == "status":
        return 0 if process is not None else STOPPED
    elif command == "run":
        _run(application_id, servers, topic)
    return 0


def _running(file: Path) -> psutil.Process | None:
    try:
        process = psutil.Process(int(file.read_text()))
        return process if process.status() != psutil.STATUS_ZOMBIE else None
    except (OSError, ValueError, psutil.Error):
        return None


def _run(application_id: str, servers: str, topic: str) -> None:
    stopped = False

    def stop(_: int, __: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": application_id, "enable.auto.commit": False})
    consumer.subscribe([topic])
    while not stopped:
        consumer.poll(0.1)
    consumer.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
