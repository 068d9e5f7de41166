"""What whoever asks for an expansion takes for granted about the application."""

from __future__ import annotations

from enum import StrEnum


class ExpectedState(StrEnum):
    """Whether the application runs when its expansion begins.

    ``either``: an input that has grown kills a running application, and its expansion is the rescue. Who expands
    something in the night may want to be refused if it is not ``running``; who has stopped it for a growth in
    place, if somebody has started it again.
    """

    EITHER = "either"
    RUNNING = "running"
    STOPPED = "stopped"
