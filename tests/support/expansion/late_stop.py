"""A stop of the old generation that a test holds, so that it can do harm within the pause however fast that is."""

from __future__ import annotations

import time
from pathlib import Path

from kafka_rescale.lifecycle.instance import Instance
from kafka_rescale.lifecycle.shell import ShellCommands


def hold_stops(file: Path) -> None:
    """Let every ``stop`` of this process return only once a file is gone.

    :param file: the file that holds the stops, as long as it exists.
    """
    stop = ShellCommands.stop

    def stop_late(self: ShellCommands, instance: Instance) -> None:
        stop(self, instance)
        while file.exists():
            time.sleep(0.02)

    ShellCommands.stop = stop_late  # type: ignore[method-assign]
