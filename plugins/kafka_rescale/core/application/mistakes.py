"""A mistake in an application file, at its place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from kafka_rescale.core.errors import Finding

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class Mistake:
    """A finding at a place of the application file.

    :param location: path of keys and indexes to the offending value, for its line.
    """

    location: Location
    found: str
    expected: str
    remedy: str

    def finding(self, where: str) -> Finding:
        """Return the finding with the place spelled out."""
        return Finding(where, self.found, self.expected, self.remedy)


def unknown(location: Location, kind: str, name: str, known: Iterable[str]) -> Mistake:
    """Return the mistake of a name that the topology doesn't have, with the nearest that it has."""
    known = tuple(known)
    near = get_close_matches(name, known, n=1)
    return Mistake(
        location,
        f"the {kind} {name}, which the topology does not have",
        f"one of {', '.join(known)}" if known else f"no {kind}: the topology has none",
        f"Did you mean {near[0]}?" if near else "Correct the name, or paste the topology of the present program.",
    )
