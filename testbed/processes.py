"""Processes by their ids: whether they run, and ending them. Also waits for conditions, and free ports."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

POLL_SECONDS = 0.05

# Below Linux's ephemeral range, so that no outgoing connection takes the port while a broker restarts.
PORT_RANGE = range(18000, 32000)


def wait_until(
    condition: Callable[[], object], *, timeout: float, what: str, poll_seconds: float = POLL_SECONDS
) -> None:
    """Return as soon as ``condition()`` is true.

    :param timeout: seconds
    :raises TimeoutError: the condition did not hold in time. The error names ``what`` was waited for.
    """
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Timed out after {timeout:g} s waiting for {what}")
        time.sleep(poll_seconds)


def is_running(pid: int, marker: str = "") -> bool:
    """Return whether process ``pid`` runs and its command line contains ``marker``.

    The marker tells a process from a later process with the same id. A zombie doesn't run: in a container, it may
    never be collected.
    """
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        command_line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (ProcessLookupError, FileNotFoundError, PermissionError):
        return False
    return state not in {"Z", "X"} and marker in command_line


def end_process(pid: int, *, marker: str = "", timeout: float = 60) -> bool:
    """Send SIGTERM and wait until the process is gone. Send SIGKILL if it isn't gone after ``timeout`` seconds.

    :returns: whether the process ended without SIGKILL.
    """
    if not is_running(pid, marker):
        return True
    os.kill(pid, signal.SIGTERM)
    try:
        wait_until(lambda: not is_running(pid, marker), timeout=timeout, what=f"the end of process {pid}")
    except TimeoutError:
        kill_process(pid, marker=marker)
        return False
    return True


def kill_process(pid: int, *, marker: str = "") -> None:
    """Send SIGKILL, and return when the process is gone."""
    if is_running(pid, marker):
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_running(pid, marker), timeout=30, what=f"the end of killed process {pid}")


def end_with_parent(pid: int, started: str = "") -> subprocess.Popen[bytes]:
    """Start a watchdog that kills ``pid`` when this Python process ends, however it ends.

    The watchdog blocks on a pipe that only this process holds open. (PR_SET_PDEATHSIG would fire when the
    *thread* that started the child ends.) The system gives ids again, even to threads of other processes. So the
    watchdog kills only the process that had the id at first.

    :param pid: id of a child that no process has waited for yet.
    :param started: when the child was started, in the form of :func:`started_at`; by default the start of the
        process that has the id now.
    """
    same = "[ \"$(sed 's/.*) //' /proc/$0/stat 2>/dev/null | cut -d ' ' -f 20)\" = \"$1\" ]"
    command = ["/bin/sh", "-c", f'read -r _; {same} && kill -KILL "$0" 2>/dev/null', str(pid)]
    return subprocess.Popen([*command, started or started_at(pid)], stdin=subprocess.PIPE, start_new_session=True)


def started_at(pid: int) -> str:
    """Return when a process was started, in clock ticks since the machine's start. With the id, this is unique.

    :raises FileNotFoundError: there is no such process.
    """
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def is_listening(port: int) -> bool:
    """Return whether a process accepts connections to a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def free_ports(count: int) -> list[int]:
    """Return ``count`` different TCP ports on which no process listens at 127.0.0.1."""
    found: list[int] = []
    for port in random.sample(PORT_RANGE, len(PORT_RANGE)):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"no {count} free ports between {PORT_RANGE.start} and {PORT_RANGE.stop}")
