"""A mistake in an application file, at its place."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Self

from kafka_rescale.core.errors import Complaint

Location = tuple[str | int, ...]


class Mistake:
    """A complaint about a value of the application file.

    :param location: path of keys and indexes to the value, for its line.
    """

    def __init__(self, location: Location, found: str, expected: str, remedy: str) -> None:
        self.location = location
        self.complaint = Complaint(_dotted(location), found, expected, remedy)

    @classmethod
    def of(cls, location: Location, complaint: Complaint) -> Self:
        """Return a complaint as a mistake at a place of the file."""
        return cls(location, complaint.found, complaint.expected, complaint.remedy)


class WrongValue(ValueError):
    """What a validator raises about the value of a field: pydantic adds the location.

    The parameters are the parts of a complaint.
    """

    def __init__(self, *, found: str, expected: str, remedy: str) -> None:
        self.complaint = Complaint("", found, expected, remedy)
        super().__init__(str(self.complaint))

    @classmethod
    def of(cls, complaint: Complaint) -> Self:
        """Return a complaint as a complaint about the value of a field."""
        return cls(found=complaint.found, expected=complaint.expected, remedy=complaint.remedy)


def unknown(location: Location, kind: str, name: str, known: Iterable[str]) -> Mistake:
    """Return the mistake about a name that the topology doesn't have, with the nearest name that it has."""
    known = tuple(known)
    near = get_close_matches(name, known, n=1)
    return Mistake(
        location,
        f"the {kind} {name}, which the topology does not have",
        f"one of {', '.join(known)}" if known else f"no {kind}: the topology has none",
        f"Did you mean {near[0]}?" if near else "Correct the name, or paste the topology of the present program.",
    )


def _dotted(location: Location) -> str:
    """Return a path such as ``inputs[0].policy``. The kind of a lifecycle is left out: only pydantic adds it."""
    text = ""
    for index, part in enumerate(location):
        if index == 1 and location[0] == "lifecycle" and part in {"shell", "python", "manual"}:
            continue
        is_index = isinstance(part, int) and not isinstance(part, bool)
        text += f"[{part}]" if is_index else f".{str(part).lower() if isinstance(part, bool) else part}"
    return text.removeprefix(".")
