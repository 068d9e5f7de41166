"""Producers that can be held: one file asks them to send nothing, another one says that they don't."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import Event

from testbed.processes import wait_until


@dataclass(frozen=True)
class Hold:
    """The commands of an application file, and what a producer of the tests makes of them.

    :param directory: where the two files are.
    :param ended: set when nothing more is to be sent.
    """

    directory: Path
    ended: Event

    @property
    def commands(self) -> dict[str, str]:
        """``stop`` and ``start``, as an application file declares them."""
        return {
            "stop": f"sh -c 'touch {self._asked}; until [ -e {self.held} ]; do sleep 0.05; done'",
            "start": f"rm -f {self._asked}",
        }

    @property
    def held(self) -> Path:
        """Exists while nothing is sent."""
        return self.directory / "held"

    @property
    def _asked(self) -> Path:
        return self.directory / "hold"

    def is_asked(self, within: float) -> bool:
        """Return whether to send nothing more, at once or after so many seconds."""
        return self._asked.exists() or self.ended.wait(within)

    def until_released(self) -> None:
        """Say that nothing is being sent, until something may be sent again or nothing ever will."""
        self.held.touch()
        wait_until(lambda: self.ended.is_set() or not self._asked.exists(), timeout=600, what="the release")
        self.held.unlink()
