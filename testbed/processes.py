"""Processes known by their id: do they run, end them, and wait on conditions instead of sleeping."""

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

# Below Linux's ephemeral range: no outgoing connection may take the port while a broker restarts.
PORT_RANGE = range(18000, 32000)


def wait_until(
    condition: Callable[[], object], *, timeout: float, what: str, poll_seconds: float = POLL_SECONDS
) -> None:
    """Return as soon as ``condition()`` is true.

    :param timeout: seconds
    :raises TimeoutError: naming ``what`` was waited for.
    """
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Timed out after {timeout:g} s waiting for {what}")
        time.sleep(poll_seconds)


def is_running(pid: int, marker: str = "") -> bool:
    """Whether process ``pid`` runs and its command line contains ``marker``.

    The marker tells a process from a later one with the same id. A zombie doesn't run: in a container nobody
    may ever collect it.
    """
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        command_line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (ProcessLookupError, FileNotFoundError, PermissionError):
        return False
    return state not in {"Z", "X"} and marker in command_line


def end_process(pid: int, *, marker: str = "", timeout: float = 60) -> bool:
    """SIGTERM, wait until the process is gone, SIGKILL if it isn't after ``timeout`` seconds.

    :returns: whether it ended by itself, that is, without SIGKILL.
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
    """SIGKILL, and return when the process is gone."""
    if is_running(pid, marker):
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_running(pid, marker), timeout=30, what=f"the end of killed process {pid}")


def end_with_parent(pid: int, started: str = "") -> subprocess.Popen[bytes]:
    """Start a watchdog that kills ``pid`` when this Python process ends, however it ends.

    The watchdog blocks on a pipe that only this process holds open. (PR_SET_PDEATHSIG would fire when the
    *thread* that started the child ends.) Ids are given again, to threads of other processes among others: it
    kills the process that had the id at first, or nobody.

    :param pid: of a child that nobody has waited for yet.
    :param started: when that was, as :func:`started_at` has it; by default that of the process which has the id.
    """
    same = "[ \"$(sed 's/.*) //' /proc/$0/stat 2>/dev/null | cut -d ' ' -f 20)\" = \"$1\" ]"
    command = ["/bin/sh", "-c", f'read -r _; {same} && kill -KILL "$0" 2>/dev/null', str(pid)]
    return subprocess.Popen([*command, started or started_at(pid)], stdin=subprocess.PIPE, start_new_session=True)


def started_at(pid: int) -> str:
    """When a process was started, in clock ticks since the machine was: with its id, it is that process alone.

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
    """``count`` different TCP ports that nobody listens on at 127.0.0.1."""
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
