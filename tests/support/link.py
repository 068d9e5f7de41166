"""The lifecycle commands of a link of a chain: ``link.py start|stop|status APPLICATION_ID [INPUT]``.

``LINKS`` names a directory with ``links.json``. Per base name, this file says what the application reads, writes
and computes. The start command can name another input. While there is a file ``APPLICATION_ID.unstoppable``,
``stop`` fails.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from testbed.jars import JVM_DIRECTORY, java_command
from testbed.processes import end_process, is_running

SOURCE = JVM_DIRECTORY / "tests" / "LinkApplication.java"
FAST = ("-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
RUNNING, STOPPED = 0, 3


def main(command: str, application_id: str, source: str = "") -> int:
    """Run one command and return its exit code."""
    directory = Path(os.environ["LINKS"])
    pid_file = directory / f"{application_id}.pid"
    marker = f"LinkApplication.java {application_id} "
    pid = int(pid_file.read_text()) if pid_file.exists() else 0
    running = bool(pid) and is_running(pid, marker)
    if command == "status":
        return RUNNING if running else STOPPED
    if command == "stop" and (directory / f"{application_id}.unstoppable").exists():
        return 1
    if command == "stop" and running:
        end_process(pid, marker=marker)
    if command == "start" and not running:
        pid_file.write_text(str(start(directory, application_id, source)))
    return 0


def start(directory: Path, application_id: str, source: str) -> int:
    """Start the application and return its process id.

    :param source: the topic to read. If it is empty, this is the input of its link.
    """
    stack = json.loads((directory / "links.json").read_text())
    link = stack["links"][re.sub(r"-g\d+$", "", application_id)]
    words = [
        application_id,
        stack["servers"],
        source or link["input"],
        link["output"],
        str(directory / "state"),
        link["does"],
    ]
    with (directory / f"{application_id}.log").open("ab") as log:
        return subprocess.Popen(
            java_command(str(SOURCE), *words, options=(*FAST, QUIET)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ).pid


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
