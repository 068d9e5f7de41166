"""Windows of time, and keys that have one."""

from __future__ import annotations

from typing import Any, NamedTuple


class Windowed(NamedTuple):
    """The key of a windowed table.

    :param start: in ms, inclusive.
    :param end: in ms: exclusive for windows of time, inclusive for sessions.
    """

    key: Any
    start: int
    end: int
