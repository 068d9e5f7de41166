"""Functions that a user could declare for ``on_partition_expansion``."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

EFFECTS = "EXPANSION_EFFECTS"
"""Environment variable: the file that gets a line for each effect."""

DIES = "EXPANSION_DIES"
"""Environment variable: the process dies ``before`` or ``after`` the effect. If it is not set, it does not die."""

NOT_A_FUNCTION = 3


def effects() -> list[str]:
    """The effects so far."""
    file = Path(os.environ[EFFECTS])
    return file.read_text().splitlines() if file.exists() else []


def note(old: int, new: int) -> None:
    """Have an effect per call."""
    _dies("before")
    _add(f"{old}->{new}")
    _dies("after")


def note_once(old: int, new: int, *, expansion_id: str) -> None:
    """Have one effect per expansion, however often it is called."""
    _dies("before")
    if not any(line.endswith(expansion_id) for line in effects()):
        _add(f"{old}->{new} {expansion_id}")
    _dies("after")


def fails(old: int, new: int) -> None:
    """Fail, because there is never an answer."""
    raise TimeoutError("no answer from the scheduler")


def fails_with_token(old: int, new: int, expansion_id: str) -> None:
    """Fail, because there is never an answer. Its token allows another try."""
    raise TimeoutError("no answer from the scheduler")


def of_one_count(new: int) -> None:
    """Take only one count, so that a call with two counts fails."""


def _add(line: str) -> None:
    with Path(os.environ[EFFECTS]).open("a") as file:
        file.write(f"{line}\n")


def _dies(when: str) -> None:
    if os.environ.get(DIES) == when:
        os.kill(os.getpid(), signal.SIGKILL)


def exits(old: int, new: int) -> None:
    """End as a program does whose ``main`` is called."""
    sys.exit(0)


def exits_with_token(old: int, new: int, expansion_id: str) -> None:
    """End as ``exits`` does."""
    sys.exit(0)
