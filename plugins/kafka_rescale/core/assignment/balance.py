"""The balancing of clients: equally many tasks per stream thread, as far as moves of single tasks allow it."""

from __future__ import annotations

from collections.abc import Callable

from kafka_rescale.core.assignment.draft import Draft
from kafka_rescale.core.assignment.tasks import Role

IsAllowed = Callable[[str, str], bool]
"""Takes two clients; returns whether tasks may move from the first client to the second client."""


def balance(draft: Draft, role: Role, is_allowed: IsAllowed) -> None:
    """Move tasks in one role to clients with fewer tasks per thread, until no move makes the loads more even."""
    has_moved = True
    while has_moved:
        has_moved = False
        emptiest = draft.least_load_with_one_more()
        for source in draft:
            if draft.load_without_one(source) < emptiest:
                continue
            for destination in draft:
                if draft.improves(source, destination) and is_allowed(source, destination):
                    has_moved |= _move_some(draft, role, source, destination)
            emptiest = draft.least_load_with_one_more()


def _move_some(draft: Draft, role: Role, source: str, destination: str) -> bool:
    has_moved = False
    for task in sorted(draft.tasks(source, role)):
        if not draft.improves(source, destination):
            break
        if not draft.has(destination, task):
            draft.unassign(source, task, role)
            draft.assign(destination, task, role)
            has_moved = True
    return has_moved
