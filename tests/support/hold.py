"""Producers that can be held. One file asks them to send nothing, and another file says that they send nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import Event

from testbed.processes import wait_until


@dataclass(frozen=True)
class Hold:
    """The commands of an application file that hold producers, and what a producer of the tests asks and says.

    :param directory: directory of the two files.
    :param ended: set when the producers shall never send again.
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
        """The file that exists while nothing is sent."""
        return self.directory / "held"

    @property
    def _asked(self) -> Path:
        return self.directory / "hold"

    def is_asked(self, within: float) -> bool:
        """Return whether to stop sending: a hold is asked for, or sending ends for good within so many seconds."""
        return self._asked.exists() or self.ended.wait(within)

    def until_released(self) -> None:
        """Say that nothing is being sent, until the hold is over or sending has ended for good."""
        self.held.touch()
        wait_until(lambda: self.ended.is_set() or not self._asked.exists(), timeout=600, what="the release")
        self.held.unlink()
