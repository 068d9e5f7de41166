"""Standbys on other racks than the active task, as the first draft of KIP-708 has it: one rack id per client.

The released KIP has client tags instead (:mod:`~kafka_rescale.core.assignment.client_tags`), by which standbys are
placed unless an application file names a rule of the user's own, ``rack.standby.task.assignor``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol

from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.draft import Draft, LeastLoaded
from kafka_rescale.core.assignment.tasks import Client, Role, TaskId
from kafka_rescale.core.callables import named
from kafka_rescale.core.errors import InvalidInput

SETTING = "rack.standby.task.assignor"
EXPECTED = (
    "a class without arguments, whose assign_standby_task_to_racks(source_tasks, client_rack_ids) returns "
    "sets of tasks by rack"
)


class RackStandbyTaskAssignor(Protocol):
    """Which racks may have standbys of which tasks."""

    def assign_standby_task_to_racks(
        self, source_tasks: Mapping[TaskId, str], client_rack_ids: AbstractSet[str]
    ) -> Mapping[str, AbstractSet[TaskId]]:
        """Return the tasks whose standbys each rack may have.

        :param source_tasks: rack of the active task, per task.
        :param client_rack_ids: every rack that has a client.
        """


class DefaultRackStandbyTaskAssignor:
    """A standby may be on every rack but that of its active task.

    The draft's own default empties a rack's set whenever it meets a task that is active there, so that the order
    of the tasks decides what remains. Here each rack keeps what it was given.
    """

    def assign_standby_task_to_racks(
        self, source_tasks: Mapping[TaskId, str], client_rack_ids: AbstractSet[str]
    ) -> Mapping[str, AbstractSet[TaskId]]:
        """Return all tasks that are active elsewhere, per rack."""
        return {
            rack: {task for task, active_rack in source_tasks.items() if active_rack != rack}
            for rack in sorted(client_rack_ids)
        }


class RackStandbys:
    """Places standbys where a :class:`RackStandbyTaskAssignor` allows them, on the least loaded clients.

    :param racks: rack by client id.
    """

    def __init__(self, racks: Mapping[str, str], assignor: RackStandbyTaskAssignor | None = None) -> None:
        self._racks = racks
        self._assignor = assignor or DefaultRackStandbyTaskAssignor()

    def assign(self, draft: Draft, stateful: Iterable[TaskId], configs: AssignmentConfigs) -> Mapping[TaskId, int]:
        """Place the standbys; if no allowed rack has room for a standby, it is left out instead of misplaced."""
        source = {task: self._racks[client] for client in draft for task in draft.tasks(client, Role.ACTIVE)}
        source = {task: source[task] for task in sorted(stateful) if task in source}
        allowed = _allowed(self._assignor, source, frozenset(self._racks[c] for c in draft))
        clients = LeastLoaded(draft, draft.load)
        missing = {}
        for task in source:
            racks = {rack for rack, tasks in allowed.items() if task in tasks}
            for left in range(configs.num_standby_replicas, 0, -1):
                client = clients.pick(lambda c: self._racks[c] in racks and not draft.has(c, task))  # noqa: B023
                if client is None:
                    missing[task] = left
                    break
                draft.assign(client, task, Role.STANDBY)
        return missing

    def is_allowed_movement(self, source: Client, destination: Client) -> bool:
        """Return whether both are on one rack."""
        return self._racks[source.id] == self._racks[destination.id]


def rack_standby_task_assignor(name: str) -> RackStandbyTaskAssignor:
    """Return an instance of the class that ``rack.standby.task.assignor`` names.

    :param name: ``module:Class``.
    :raises InvalidInput: there is no such class, it takes arguments, or it lacks the method.
    """
    kind = named(SETTING, name, EXPECTED)
    try:
        made = kind()
    except Exception as error:
        raise _invalid(name, f"{type(error).__name__}: {error}") from error
    if not callable(getattr(made, "assign_standby_task_to_racks", None)):
        raise _invalid(name, f"{made!r} without that method")
    assignor: RackStandbyTaskAssignor = made
    return assignor


def _allowed(
    assignor: RackStandbyTaskAssignor, source: Mapping[TaskId, str], racks: AbstractSet[str]
) -> dict[str, AbstractSet[TaskId]]:
    """Return what a class of the user's answers, as sets.

    :raises InvalidInput: it has failed, or has answered something else.
    """
    try:
        found = assignor.assign_standby_task_to_racks(source, racks)
        return {rack: set(tasks) for rack, tasks in found.items()}
    except Exception as error:
        raise _invalid(type(assignor).__name__, f"{type(error).__name__}: {error}") from error


def _invalid(name: str, found: str) -> InvalidInput:
    return InvalidInput(f"{SETTING} {name!r}", found=found, expected=EXPECTED, remedy="Correct the class.")
