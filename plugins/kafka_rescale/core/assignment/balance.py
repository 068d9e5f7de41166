"""As many tasks per stream thread on every client, as far as moves of single tasks can make them."""

from __future__ import annotations

from collections.abc import Callable

from kafka_rescale.core.assignment.draft import Draft
from kafka_rescale.core.assignment.tasks import Role, TaskId

IsAllowed = Callable[[TaskId, str, str], bool]
"""Whether a task may move from one client to another."""


def balance(draft: Draft, role: Role, is_allowed: IsAllowed) -> None:
    """Move tasks in one role to clients with fewer tasks per thread, as long as that evens them out."""
    has_moved = True
    while has_moved:
        has_moved = False
        emptiest = _emptiest(draft)
        for source in draft:
            if _after_losing_one(draft, source) < emptiest:
                continue
            for destination in draft:
                has_moved |= _move_some(draft, role, source, destination, is_allowed)
            emptiest = _emptiest(draft)


def _move_some(draft: Draft, role: Role, source: str, destination: str, is_allowed: IsAllowed) -> bool:
    has_moved = False
    for task in sorted(draft.tasks(source, role)):
        if _after_losing_one(draft, source) < _after_gaining_one(draft, destination):
            break
        if not draft.has(destination, task) and is_allowed(task, source, destination):
            draft.unassign(source, task, role)
            draft.assign(destination, task, role)
            has_moved = True
    return has_moved


def _emptiest(draft: Draft) -> float:
    return min(_after_gaining_one(draft, client) for client in draft)


def _after_losing_one(draft: Draft, client: str) -> float:
    return (draft.count(client) - 1) / draft.clients[client].threads


def _after_gaining_one(draft: Draft, client: str) -> float:
    return (draft.count(client) + 1) / draft.clients[client].threads
