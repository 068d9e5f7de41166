"""Standbys on other racks than the active task, as in the first draft of KIP-708: each client has one rack id.

The released KIP has client tags instead, and :mod:`~kafka_rescale.core.assignment.client_tags` places standbys by
these tags. An application file may name the user's own rule under ``rack.standby.task.assignor``. Then this module
places the standbys by that rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol

from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.draft import Draft, LeastLoaded
from kafka_rescale.core.assignment.tasks import Client, Role, TaskId
from kafka_rescale.core.callables import RAISED, named
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.values import listed

SETTING = "rack.standby.task.assignor"
EXPECTED = (
    "a class that takes no arguments and has a method assign_standby_task_to_racks(source_tasks, client_rack_ids) "
    "that returns sets of tasks by rack: keys of source_tasks, and racks of client_rack_ids"
)


class RackStandbyTaskAssignor(Protocol):
    """A rule that decides which racks may have standbys of which tasks."""

    def assign_standby_task_to_racks(
        self, source_tasks: Mapping[TaskId, str], client_rack_ids: AbstractSet[str]
    ) -> Mapping[str, AbstractSet[TaskId]]:
        """Return the tasks whose standbys each rack may have.

        :param source_tasks: for each task, the rack of its active task.
        :param client_rack_ids: every rack that has a client.
        """


class DefaultRackStandbyTaskAssignor:
    """The default rule: a standby may be on every rack except the rack of its active task.

    The default in the draft of the KIP empties the set of a rack whenever it meets a task that is active on that
    rack. So the order of the tasks decides which tasks remain. Here, each rack keeps the tasks that it has got.
    """

    def assign_standby_task_to_racks(
        self, source_tasks: Mapping[TaskId, str], client_rack_ids: AbstractSet[str]
    ) -> Mapping[str, AbstractSet[TaskId]]:
        """Return for each rack all tasks that are active on another rack."""
        return {
            rack: {task for task, active_rack in source_tasks.items() if active_rack != rack}
            for rack in sorted(client_rack_ids)
        }


class RackStandbys:
    """Places standbys where a :class:`RackStandbyTaskAssignor` allows them, on the least loaded clients.

    :param racks: rack by client id.
    :param declared: further racks that the assignor may name, because clients that are absent now belong to them.
    """

    def __init__(
        self,
        racks: Mapping[str, str],
        assignor: RackStandbyTaskAssignor | None = None,
        declared: Collection[str] = (),
    ) -> None:
        self._racks, self._declared = racks, declared
        self._assignor = assignor or DefaultRackStandbyTaskAssignor()

    def assign(self, draft: Draft, stateful: Iterable[TaskId], configs: AssignmentConfigs) -> Mapping[TaskId, int]:
        """Place the standbys. If no allowed rack has room for a standby, leave the standby out.

        :raises InvalidInput: the user's class has failed, or its answer has unknown tasks or racks.
        """
        source = {task: self._racks[client] for client in draft for task in draft.tasks(client, Role.ACTIVE)}
        source = {task: source[task] for task in sorted(stateful) if task in source}
        racks_now = frozenset(self._racks[c] for c in draft)
        allowed = _allowed(self._assignor, source, racks_now, racks_now.union(self._declared))
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
        """Return whether both clients are on the same rack."""
        return self._racks[source.id] == self._racks[destination.id]


def rack_standby_task_assignor(name: str) -> RackStandbyTaskAssignor:
    """Return an object of the class that ``rack.standby.task.assignor`` names.

    :param name: ``module:Class``.
    :raises InvalidInput: there is no such class, the class takes arguments, or it lacks the method.
    """
    kind = named(SETTING, name, EXPECTED)
    try:
        made = kind()
    except RAISED as error:
        raise _invalid(name, f"{type(error).__name__}: {error}") from error
    if not callable(getattr(made, "assign_standby_task_to_racks", None)):
        raise _invalid(name, f"{made!r} without that method")
    assignor: RackStandbyTaskAssignor = made
    return assignor


def _allowed(
    assignor: RackStandbyTaskAssignor,
    source: Mapping[TaskId, str],
    racks: AbstractSet[str],
    known: AbstractSet[str],
) -> dict[str, AbstractSet[TaskId]]:
    """Return the answer of the user's class, as sets.

    :param known: the racks that the answer may have.
    :raises InvalidInput: the class has failed, or has returned something else.
    """
    name = type(assignor).__name__
    try:
        answer = assignor.assign_standby_task_to_racks(source, racks)
        allowed: dict[str, AbstractSet[TaskId]] = {rack: set(tasks) for rack, tasks in answer.items()}
    except RAISED as error:
        raise _invalid(name, f"{type(error).__name__}: {error}") from error
    for rack, tasks in allowed.items():
        if rack not in known:
            raise _invalid(name, f"the rack {rack!r}, which no client has")
        # An unknown task would only be a standby that is missing: "0_1" is no TaskId, and equals none.
        if unknown := sorted(_shown(task) for task in tasks - source.keys()):
            found = f"for rack {rack!r} the tasks {listed(unknown)}, which are no keys of source_tasks"
            raise _invalid(name, found)
    return allowed


def _shown(task: object) -> str:
    return str(task) if isinstance(task, TaskId) else repr(task)


def _invalid(name: str, found: str) -> InvalidInput:
    return InvalidInput(f"{SETTING} {name!r}", found=found, expected=EXPECTED, remedy="Correct the class.")
