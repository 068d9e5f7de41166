"""Functions such as users declare for ``on_partition_expansion``."""

from __future__ import annotations

import os
import signal
from pathlib import Path

EFFECTS = "EXPANSION_EFFECTS"
"""Environment variable: the file in which an effect is a line."""

DIES = "EXPANSION_DIES"
"""Environment variable: ``before`` or ``after`` the effect, or nothing."""

NOT_A_FUNCTION = 3


def effects() -> list[str]:
    """What has been brought about."""
    file = Path(os.environ[EFFECTS])
    return file.read_text().splitlines() if file.exists() else []


def note(old: int, new: int) -> None:
    """An effect per call."""
    _dies("before")
    _add(f"{old}->{new}")
    _dies("after")


def note_once(old: int, new: int, *, expansion_id: str) -> None:
    """An effect per expansion, however often it is called."""
    _dies("before")
    if not any(line.endswith(expansion_id) for line in effects()):
        _add(f"{old}->{new} {expansion_id}")
    _dies("after")


def fails(old: int, new: int) -> None:
    """Never gets an answer."""
    raise TimeoutError("no answer from the scheduler")


def fails_with_token(old: int, new: int, expansion_id: str) -> None:
    """Never gets an answer, and may be asked again."""
    raise TimeoutError("no answer from the scheduler")


def of_one_count(new: int) -> None:
    """Can't be called with two."""


def _add(line: str) -> None:
    with Path(os.environ[EFFECTS]).open("a") as file:
        file.write(f"{line}\n")


def _dies(when: str) -> None:
    if os.environ.get(DIES) == when:
        os.kill(os.getpid(), signal.SIGKILL)
