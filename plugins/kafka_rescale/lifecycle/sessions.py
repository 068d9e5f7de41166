"""The processes of a command. A command has a session of its own, and what it starts is in it as well."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

_GONE_SECONDS = 1.0
"""How long killed processes are waited for. One that waits for a disk, or belongs to another user, may stay."""
_PAUSE_SECONDS = 0.01


def end(process: subprocess.Popen[bytes], *, with_children: bool) -> list[int]:
    """Kill a command that is the leader of its session. Return the ids of its processes that go on.

    :param process: the command; nobody has waited for its end yet, so its id can't be another process's by now.
    :param with_children: whether every process of its session is killed as well.
    """
    kill = os.killpg if with_children else os.kill
    with suppress(ProcessLookupError, PermissionError):  # It has just ended, or it runs as another user.
        kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + _GONE_SECONDS
    while with_children and (left := processes_of(process.pid)) and time.monotonic() < deadline:
        for each in left:  # `timeout`, and shells with job control, give a child a group of its own.
            with suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        time.sleep(_PAUSE_SECONDS)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GONE_SECONDS)
    return processes_of(process.pid)


def processes_of(session: int) -> list[int]:
    """Return the ids of a session's processes that have not ended, as far as ``/proc`` tells them."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The second field is the name in brackets. It may have any character.
            state, _, _, of = file.read_text(errors="replace").rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue  # It has ended meanwhile.
        if int(of) == session and state not in {"Z", "X"}:
            found.append(int(file.parent.name))
    return sorted(found)
