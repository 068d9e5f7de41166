"""A process that works on a directory, with its log, its id in a file, and a watchdog that ends it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


class KeptProcess:
    """One process at a time. Other Python processes can find it by its id in the file.

    :param directory: directory of ``<name>.log`` and ``<name>.pid``.
    :param watchdog: starts a watchdog, which ends the process when this Python process ends. With None, the
        process outlives this Python process.
    """

    def __init__(
        self, directory: Path, name: str, watchdog: Callable[[int], subprocess.Popen[bytes]] | None
    ) -> None:
        self._log_file = directory / f"{name}.log"
        self._pid_file = directory / f"{name}.pid"
        self._watch = watchdog
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @property
    def recorded_pid(self) -> int | None:
        """The id in the file. Its process may have ended, and another Python process may have started it."""
        try:
            return int(self._pid_file.read_text())
        except (FileNotFoundError, ValueError):
            return None

    @property
    def has_ended(self) -> bool:
        """Whether the process that was started here has ended."""
        return self._process is not None and self._process.poll() is not None

    def start(self, command: Sequence[str], **options: Any) -> None:
        """Start the process in a session of its own. Its output goes to the log.

        :param options: options of ``subprocess.Popen``.
        """
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **options
            )
        self._pid_file.write_text(str(self._process.pid))
        if self._watch is not None:
            self._watchdog = self._watch(self._process.pid)

    def forget(self) -> None:
        """Clean up after the process, which has been ended, and end its watchdog."""
        for process in (self._process, self._watchdog):
            if process is not None:
                process.kill()
                process.wait()
                if process.stdin is not None:
                    process.stdin.close()
        self._process = self._watchdog = None
        self._pid_file.unlink(missing_ok=True)

    def log_tail(self, characters: int) -> str:
        """Return the end of the log."""
        return self._log_file.read_text(errors="replace")[-characters:]
