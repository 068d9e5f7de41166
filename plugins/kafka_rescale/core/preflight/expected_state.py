"""The state of the application that the person or program who asks for an expansion expects."""

from __future__ import annotations

from enum import StrEnum


class ExpectedState(StrEnum):
    """Whether the application runs when its expansion begins.

    ``either``: both are allowed. An input that has grown kills a running application, and then the expansion is
    the rescue. ``running``: for a person who expands an application at night, and wants a refusal if it does not
    run. ``stopped``: for a person who has stopped it for a growth in place, and wants a refusal if it runs again.
    """

    EITHER = "either"
    RUNNING = "running"
    STOPPED = "stopped"
