"""Standbys on other racks than the active task, as the first draft of KIP-708 has it: one rack id per client.

The released KIP has client tags instead (:mod:`~kafka_rescale.core.assignment.client_tags`); this is for a rule of
the user's own about which racks may have a standby.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol

from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.draft import Draft, LeastLoaded
from kafka_rescale.core.assignment.tasks import Client, Role, TaskId


class RackStandbyTaskAssignor(Protocol):
    """Which racks may have standbys of which tasks."""

    def assign_standby_task_to_racks(
        self, source_tasks: Mapping[TaskId, str], client_rack_ids: AbstractSet[str]
    ) -> Mapping[str, AbstractSet[TaskId]]:
        """Return the tasks of which each rack may have a standby.

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
        """Place the standbys; one that no allowed rack has room for is missing rather than on the wrong rack."""
        source = {task: self._racks[client] for client in draft for task in draft.tasks(client, Role.ACTIVE)}
        source = {task: source[task] for task in sorted(stateful) if task in source}
        allowed = self._assignor.assign_standby_task_to_racks(source, frozenset(self._racks[c] for c in draft))
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
