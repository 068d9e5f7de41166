"""Standbys on clients that share no tag with the other copies of their task (KIP-708)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kafka_rescale.core.assignment.configs import RACK, AssignmentConfigs
from kafka_rescale.core.assignment.draft import Draft, LeastLoaded
from kafka_rescale.core.assignment.standby_assignors import (
    DefaultStandbyTaskAssignor,
    StandbyTaskAssignor,
    fill,
)
from kafka_rescale.core.assignment.tasks import Client, Role, TaskId

Tags = frozenset[tuple[str, str]]


class ClientTagAwareStandbyTaskAssignor:
    """Places the copies of a task so that, as far as possible, they differ in every listed tag.

    The tags are listed in ``rack.aware.assignment.tags``. When the copies of a task use all values of a tag, that
    tag no longer counts for the task. A standby that can't be placed by these rules goes to the least loaded
    client (``ClientTagAwareStandbyTaskAssignor``).

    :param racks: rack by client id. If given, the rack counts as the only tag (``client.rack``, KIP-925).
    """

    def __init__(self, racks: Mapping[str, str] | None = None) -> None:
        self._racks = racks

    def assign(self, draft: Draft, stateful: Iterable[TaskId], configs: AssignmentConfigs) -> Mapping[TaskId, int]:
        """Place the standbys of each task that is active on a client, then the standbys that are left over."""
        listed = configs.rack_aware_assignment_tags if self._racks is None else (RACK,)
        tags = {client.id: self._tags(client) for client in draft.clients.values()}
        dimensions = _Dimensions(draft, tags, listed)
        active = {task: client for client in draft for task in draft.tasks(client, Role.ACTIVE)}
        left = {
            task: dimensions.place(task, active[task], configs.num_standby_replicas)
            for task in sorted(stateful, key=_by_partition)
            if task in active
        }
        missing = fill(draft, left)
        dimensions.even_out()
        return missing

    def is_allowed_movement(self, source: Client, destination: Client) -> bool:
        """Return whether the destination has all tags of the source. Then a move changes nothing about tags."""
        tags = self._tags(destination)
        return all(tags.get(key) == value for key, value in self._tags(source).items())

    def is_allowed_task_movement(self, draft: Draft, task: TaskId, source: str, destination: str) -> bool:
        """Return whether the copies of a task have at least as many distinct tags after a move as before it."""
        tags = {client.id: frozenset(self._tags(client).items()) for client in draft.clients.values()}
        return _keeps_distinct(draft, tags, task, source, tags[destination])

    def _tags(self, client: Client) -> Mapping[str, str]:
        return client.tags if self._racks is None else {RACK: self._racks[client.id]}


def standby_task_assignor(
    configs: AssignmentConfigs, racks: Mapping[str, str] | None = None
) -> StandbyTaskAssignor:
    """Return the assignor that the configs ask for (``StandbyTaskAssignorFactory``).

    :param racks: rack by client id, or None if a client has no rack. Tags in the configs take precedence.
    """
    if configs.rack_aware_assignment_tags:
        return ClientTagAwareStandbyTaskAssignor()
    return DefaultStandbyTaskAssignor() if racks is None else ClientTagAwareStandbyTaskAssignor(racks)


def _by_partition(task: TaskId) -> tuple[int, int]:
    """Return the key that sorts tasks by partition.

    Tasks of one partition often compete for the same clients. If they are placed one after the other, each of them
    takes a client that the task before has not taken.
    """
    return task.partition, task.subtopology


def _keeps_distinct(draft: Draft, tags: Mapping[str, Tags], task: TaskId, source: str, instead: Tags) -> bool:
    """Return whether a copy of a task may leave a client without a loss of distinct tags.

    :param source: the client that the copy leaves.
    :param instead: the tags of the client that the copy would go to.
    """
    others = draft.holders(task) - {source}
    kept = frozenset().union(*(tags[client] for client in others))
    return len(kept | instead) >= len(kept | tags[source])


class _Dimensions:
    """Clients grouped by their values of the listed tags.

    The search looks at groups instead of clients, because there are far fewer groups.
    """

    def __init__(self, draft: Draft, tags: Mapping[str, Mapping[str, str]], listed: Iterable[str]) -> None:
        keys = set(listed)
        self._draft = draft
        self._values: defaultdict[str, set[str]] = defaultdict(set)
        self._tags: dict[str, Tags] = {}
        members: defaultdict[Tags, list[str]] = defaultdict(list)
        for client in draft:
            pairs = frozenset((key, value) for key, value in tags[client].items() if key in keys)
            self._tags[client] = pairs
            members[pairs].append(client)
            for key, value in pairs:
                self._values[key].add(value)
        self._groups = {pairs: LeastLoaded(clients, draft.load) for pairs, clients in members.items()}

    def place(self, task: TaskId, active: str, replicas: int) -> int:
        """Place the standbys of one task and return how many of them could not be placed."""
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
                for pairs, group in self._groups.items()
                if not pairs & used
            )
            client = self._draft.least_loaded(pick for pick in picks if pick is not None)
            if client is None:
                return replicas - copies + 1
            self._draft.assign(client, task, Role.STANDBY)
            last = client
        return 0

    def even_out(self) -> None:
        """Move standbys to emptier clients. No move makes the copies of a task differ in fewer tags."""
        has_moved = True
        while has_moved:
            has_moved = False
            emptiest = self._draft.least_load_with_one_more()
            for source in self._draft:
                for task in sorted(self._draft.tasks(source, Role.STANDBY), key=_by_partition):
                    if self._draft.load_without_one(source) >= emptiest:
                        has_moved |= self._move(task, source)

    def _move(self, task: TaskId, source: str) -> bool:
        draft = self._draft
        picks = (
            group.pick(lambda client: not draft.has(client, task))
            for pairs, group in self._groups.items()
            if _keeps_distinct(draft, self._tags, task, source, pairs)
        )
        destination = draft.least_loaded(pick for pick in picks if pick is not None)
        if destination is None or not draft.improves(source, destination):
            return False
        draft.unassign(source, task, Role.STANDBY)
        draft.assign(destination, task, Role.STANDBY)
        self._groups[self._tags[source]].offer(source)
        return True
