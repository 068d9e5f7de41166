"""Standbys on clients that share no tag with the other copies of their task (KIP-708)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.draft import Draft, LeastLoaded
from kafka_rescale.core.assignment.standby_assignors import (
    DefaultStandbyTaskAssignor,
    StandbyTaskAssignor,
    fill,
)
from kafka_rescale.core.assignment.tasks import Client, Role, TaskId

Tags = frozenset[tuple[str, str]]


class ClientTagAwareStandbyTaskAssignor:
    """As far as possible, the copies of a task differ in every tag of ``rack.aware.assignment.tags``.

    A tag of which all values are in use no longer counts; what can't be placed so goes to the least loaded clients
    (``ClientTagAwareStandbyTaskAssignor``).
    """

    def assign(self, draft: Draft, stateful: Iterable[TaskId], configs: AssignmentConfigs) -> Mapping[TaskId, int]:
        """Place the standbys of each task that is active somewhere, then those that are left over."""
        dimensions = _Dimensions(draft, configs.rack_aware_assignment_tags)
        active = {task: client for client in draft for task in draft.tasks(client, Role.ACTIVE)}
        left = {
            task: dimensions.place(task, active[task], configs.num_standby_replicas)
            for task in sorted(stateful)
            if task in active
        }
        return fill(draft, left)

    def is_allowed_movement(self, source: Client, destination: Client) -> bool:
        """Return whether the destination has all tags of the source, so that a move changes nothing."""
        return all(destination.tags.get(key) == value for key, value in source.tags.items())

    def is_allowed_task_movement(self, draft: Draft, task: TaskId, source: str, destination: str) -> bool:
        """Return whether a task's copies would have no fewer distinct tags after a move."""
        others = [c for c in draft if draft.has(c, task) and c not in {source, destination}]
        kept = {pair for client in others for pair in draft.clients[client].tags.items()}
        before, after = (kept | set(draft.clients[client].tags.items()) for client in (source, destination))
        return len(after) >= len(before)


def standby_task_assignor(configs: AssignmentConfigs) -> StandbyTaskAssignor:
    """Return the assignor that the configs ask for (``StandbyTaskAssignorFactory``)."""
    if configs.rack_aware_assignment_tags:
        return ClientTagAwareStandbyTaskAssignor()
    return DefaultStandbyTaskAssignor()


class _Dimensions:
    """Clients grouped by their values of the listed tags, so that a group is looked at instead of each client."""

    def __init__(self, draft: Draft, listed: Iterable[str]) -> None:
        keys = set(listed)
        self._draft = draft
        self._values: defaultdict[str, set[str]] = defaultdict(set)
        self._tags: dict[str, Tags] = {}
        members: defaultdict[Tags, list[str]] = defaultdict(list)
        for client in draft.clients.values():
            tags = frozenset((key, value) for key, value in client.tags.items() if key in keys)
            self._tags[client.id] = tags
            members[tags].append(client.id)
            for key, value in tags:
                self._values[key].add(value)
        self._groups = {tags: LeastLoaded(clients, draft.load) for tags, clients in members.items()}

    def place(self, task: TaskId, active: str, replicas: int) -> int:
        """Place standbys of one task, and return how many could not be placed."""
        used: set[tuple[str, str]] = set()
        last = active
        for copies in range(1, replicas + 1):
            for key, value in self._tags[last]:
                if len(self._values[key]) > copies:
                    used.add((key, value))
                else:
                    used -= {pair for pair in used if pair[0] == key}
            picks = (
                group.pick(lambda client: not self._draft.has(client, task))
                for tags, group in self._groups.items()
                if not tags & used
            )
            client = self._draft.least_loaded(pick for pick in picks if pick is not None)
            if client is None:
                return replicas - copies + 1
            self._draft.assign(client, task, Role.STANDBY)
            last = client
        return 0
