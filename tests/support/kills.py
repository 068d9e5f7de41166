"""Killing processes: one process with everything it has started, or all processes of a command."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path


def sessions_of(pid: int) -> list[int]:
    """Return all processes of the session that ``pid`` leads, itself included."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError, IndexError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == pid:
                found.append(int(entry.name))
    return found


def kill_session(pid: int) -> None:
    """SIGKILL all processes of a session, as when their machine fails."""
    killed(sessions_of(pid))


def processes_with(*words: str) -> list[int]:
    """Return the processes whose command line has all the words."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if all(word in line for word in words):
                    found.append(int(entry.name))
    return found


def killed(pids: list[int]) -> bool:
    """SIGKILL the processes with these words, and return whether there was any."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)
