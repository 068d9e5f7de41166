"""Killing a process with everything it has started."""

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
    """SIGKILL all of them, as the end of a machine does."""
    for member in sessions_of(pid):
        with suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)
