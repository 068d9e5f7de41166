"""The state of the application that the person or program who asks for an expansion expects."""

from __future__ import annotations

from enum import StrEnum


class ExpectedState(StrEnum):
    """Whether the application runs when its expansion begins.

    ``either``: an input that has grown kills a running application, and the expansion is the rescue. A person who
    expands an application at night may want a refusal if it is not ``running``. A person who has stopped it for a
    growth in place may want a refusal if it was started again, and is not ``stopped``.
    """

    EITHER = "either"
    RUNNING = "running"
    STOPPED = "stopped"
