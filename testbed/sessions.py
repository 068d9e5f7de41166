"""End all processes of a session together.

Airflow's parts and their task processes make process groups of their own, but they stay in the session of the
program that started them. So do Spark's drivers. A process that a task detaches on purpose, such as an instance of
an application, starts a new session and is left alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from testbed.processes import is_running, wait_until


def session_members(session: int) -> list[int]:
    """Return the ids of the running processes of a session, by the id of the process that began it."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return sorted(pid for pid in pids if _session_of(pid) == session and is_running(pid))


def end_session(session: int, *, timeout: float) -> None:
    """Send SIGTERM to every member, after ``timeout`` seconds SIGKILL. Return when all are gone."""
    _send(signal.SIGTERM, session_members(session))
    try:
        wait_until(lambda: not session_members(session), timeout=timeout, what=f"the end of session {session}")
    except TimeoutError:
        kill_session(session)


def kill_session(session: int) -> None:
    """Send SIGKILL to every member, and to members that are started meanwhile, until no member is left."""

    def none_left() -> bool:
        left = session_members(session)
        _send(signal.SIGKILL, left)
        return not left

    wait_until(none_left, timeout=30, what=f"the end of killed session {session}")


def kill_session_with_parent(session: int) -> subprocess.Popen[bytes]:
    """Start a watchdog that kills a session when this Python process ends, however it ends."""
    command = [sys.executable, "-m", "testbed.sessions", str(session)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    return subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, start_new_session=True)


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def _send(number: int, pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


if __name__ == "__main__":  # the watchdog: its standard input ends when the process at the other end does
    sys.stdin.buffer.read()
    kill_session(int(sys.argv[1]))
