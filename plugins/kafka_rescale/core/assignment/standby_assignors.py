"""Assignors that place the standbys of each task. A user may exchange them (KIP-708)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.draft import Draft, LeastLoaded
from kafka_rescale.core.assignment.tasks import Client, Role, TaskId


class StandbyTaskAssignor(Protocol):
    """Adds standbys to a draft that has its active tasks already."""

    def assign(self, draft: Draft, stateful: Iterable[TaskId], configs: AssignmentConfigs) -> Mapping[TaskId, int]:
        """Place ``num.standby.replicas`` copies of each task, as far as there are clients without the task.

        :returns: the number of missing standbys, for each task that lacks some.
        """

    def is_allowed_movement(self, source: Client, destination: Client) -> bool:
        """Return whether standbys may move between two clients to balance their loads."""


class DefaultStandbyTaskAssignor:
    """Standbys go to the least loaded clients (``DefaultStandbyTaskAssignor``)."""

    def assign(self, draft: Draft, stateful: Iterable[TaskId], configs: AssignmentConfigs) -> Mapping[TaskId, int]:
        """Place the standbys, task by task."""
        wanted = dict.fromkeys(sorted(stateful), configs.num_standby_replicas)
        return fill(draft, wanted)

    def is_allowed_movement(self, source: Client, destination: Client) -> bool:
        """Return True: any client may have any standby."""
        return True


def fill(draft: Draft, wanted: Mapping[TaskId, int]) -> dict[TaskId, int]:
    """Place standbys on the least loaded clients that don't have the task.

    :param wanted: the number of standbys of each task.
    :returns: the number of missing standbys, for each task that lacks some because there are no more clients.
    """
    clients = LeastLoaded(draft, draft.load)
    missing = {}
    for task, replicas in wanted.items():
        for left in range(replicas, 0, -1):
            client = clients.pick(lambda client, task=task: not draft.has(client, task))  # type: ignore[misc]
            if client is None:
                missing[task] = left
                break
            draft.assign(client, task, Role.STANDBY)
    return missing
