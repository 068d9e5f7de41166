"""The values that the journal, the jobs and the control topic exchange, and how they are written for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A frozen value that can be written as JSON and read again."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def size(count: float) -> str:
    """Return a number of bytes for people; a small number does not become 0."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count:,.0f} B"


def per_second(count: float) -> str:
    """Return a rate in bytes per second for a person."""
    return f"{size(count)}/s"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return names in one text for people: the first ones, and how many more there are.

    :param most: how many are named.
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def moment(at_ms: int) -> str:
    """Return a moment in ms since the epoch for people, to the second in UTC (ISO 8601)."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")
