"""The decision of an assignor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kafka_rescale.core.assignment.draft import Draft
from kafka_rescale.core.assignment.tasks import Role, TaskId
from kafka_rescale.core.values import listed


@dataclass(frozen=True)
class ClientTasks:
    """The tasks of one client, sorted.

    :param active: the tasks that the client processes.
    :param standby: the tasks of which the client only keeps the state. Warm-ups are among them.
    """

    active: tuple[TaskId, ...] = ()
    standby: tuple[TaskId, ...] = ()

    @property
    def all(self) -> frozenset[TaskId]:
        """Every task of the client."""
        return frozenset(self.active) | frozenset(self.standby)


@dataclass(frozen=True)
class Movement:
    """A task that shall move from one client to another.

    The task stays where it is until the other client has restored its state.

    :param role: what shall move: the active task or a standby.
    :param runs_on: the client that has the task now.
    :param goes_to: the client that shall have the task, because a balanced assignment gives the task to it.
    :param is_warming_up: whether ``goes_to`` restores the task already. If not, it begins at a later rebalance.
    :param is_swap: whether ``runs_on`` had a standby of the task and the two clients swapped their roles. A swap
        does not count as a warm-up.
    """

    task: TaskId
    role: Role
    runs_on: str
    goes_to: str
    is_warming_up: bool
    is_swap: bool = False


@dataclass(frozen=True)
class Assignment:
    """The tasks that each client has now, and the movements that are still to come.

    :param clients: tasks by client id. Every client of the application has an entry.
    :param movements: the tasks that are not yet where they should be.
    :param missing: the number of missing standbys, for each task that lacks some because no client may have them.
    """

    clients: Mapping[str, ClientTasks]
    movements: tuple[Movement, ...] = ()
    missing: Mapping[TaskId, int] = field(default_factory=dict)

    @property
    def is_probing_rebalance_needed(self) -> bool:
        """Whether to assign again after ``probing.rebalance.interval.ms`` (KIP-441)."""
        return bool(self.movements)

    def warm_ups(self, client: str) -> frozenset[TaskId]:
        """Return the warm-ups of a client.

        These standbys prepare the move of a task to the client. They come on top of ``num.standby.replicas``.
        """
        return frozenset(
            m.task for m in self.movements if m.goes_to == client and m.is_warming_up and not m.is_swap
        )

    def holders(self, task: TaskId, role: Role) -> frozenset[str]:
        """Return the clients that have a task in a role."""
        return frozenset(
            client
            for client, has in self.clients.items()
            if task in (has.active if role is Role.ACTIVE else has.standby)
        )

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield the rows of a table: a client, its active tasks, and its standbys with the warm-ups marked."""
        for client, has in self.clients.items():
            warm_ups = self.warm_ups(client)
            standbys = (f"{task} (warm-up)" if task in warm_ups else str(task) for task in has.standby)
            yield client, _joined(has.active), _joined(standbys)

    def to_come(self) -> tuple[Movement, ...]:
        """Return the movements that a user should see.

        A swap can make a client a standby of a task for a moment, before that standby moves on to another client.
        Then two movements of the task lead to the first client: one of the active task, one of the standby. A user
        should see only one of them, that of the active task.
        """
        active = {(m.task, m.goes_to) for m in self.movements if m.role is Role.ACTIVE}
        return tuple(m for m in self.movements if m.role is Role.ACTIVE or (m.task, m.goes_to) not in active)

    def movement_rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        """Yield the rows of a table: a task, its role, where it is, where it goes, and what it waits for."""
        for m in self.to_come():
            kind = "warm-up" if m.task in self.warm_ups(m.goes_to) else "standby"
            is_there = m.task in self.clients[m.goes_to].standby
            waits_for = f"its {kind} to catch up" if is_there else "a free warm-up"
            yield str(m.task), str(m.role), m.runs_on, m.goes_to, waits_for

    def missing_rows(self) -> Iterator[tuple[str, int]]:
        """Yield the rows of a table: a task, and how many of its standbys are missing."""
        for task, lacks in sorted(self.missing.items()):
            yield str(task), lacks

    def told_missing(self, replicas: int) -> Iterator[str]:
        """Yield sentences about the missing standbys, and what to do about them.

        :param replicas: how many standbys each task shall have, ``num.standby.replicas``.
        """
        for lacks in sorted(set(self.missing.values())):
            names = [str(task) for task, number in sorted(self.missing.items()) if number == lacks]
            has = "has" if lacks == 1 else "have"
            yield (
                f"{lacks} of {replicas} standbys of {listed(names)} {has} no client: a client has no task twice, "
                "and client tags or racks may keep standbys away. Declare more clients, bring absent ones back, "
                "or lower num.standby.replicas"
            )


def assignment_of(draft: Draft, movements: Iterable[Movement], missing: Mapping[TaskId, int]) -> Assignment:
    """Return the assignment that a finished draft stands for.

    :param missing: the standbys that could not be placed, as a standby assignor returns them.
    """
    clients = {
        client: ClientTasks(
            tuple(sorted(draft.tasks(client, Role.ACTIVE))), tuple(sorted(draft.tasks(client, Role.STANDBY)))
        )
        for client in draft
    }
    return Assignment(clients, tuple(movements), missing)


def _joined(tasks: Iterable[object]) -> str:
    return ", ".join(map(str, tasks)) or "-"
