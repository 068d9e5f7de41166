"""The rules of KIP-924 that an assignment has to keep (``TaskAssignor.AssignmentError``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from kafka_rescale.core.assignment.assignment import Assignment
from kafka_rescale.core.assignment.tasks import TaskId, Tasks
from kafka_rescale.core.errors import UnsafeState


class AssignmentError(StrEnum):
    """The mistakes that an assignment can have, under KIP-924's names.

    The KIP lacks the last two: its assignments can't have such a mistake, or it leaves this to the assignor.
    """

    ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES = "ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES"
    INVALID_STANDBY_TASK = "INVALID_STANDBY_TASK"
    MISSING_PROCESS_ID = "MISSING_PROCESS_ID"
    UNKNOWN_PROCESS_ID = "UNKNOWN_PROCESS_ID"
    UNKNOWN_TASK_ID = "UNKNOWN_TASK_ID"
    ACTIVE_TASK_MISSING = "ACTIVE_TASK_MISSING"
    ACTIVE_AND_STANDBY_ON_ONE_CLIENT = "ACTIVE_AND_STANDBY_ON_ONE_CLIENT"


@dataclass(frozen=True)
class Flaw:
    """One rule that an assignment breaks.

    :param found: the clients and tasks that break the rule, in words.
    """

    error: AssignmentError
    found: str

    def __str__(self) -> str:
        return f"{self.error}: {self.found}"


def flaws(assignment: Assignment, tasks: Tasks, clients: Collection[str]) -> tuple[Flaw, ...]:
    """Return every rule that an assignment breaks.

    :param tasks: all tasks of the application.
    :param clients: ids of all clients of the application.
    """
    return (*_wrong_clients(assignment, clients), *_wrong_tasks(assignment, tasks))


def require_valid(assignment: Assignment, tasks: Tasks, clients: Collection[str]) -> None:
    """Refuse an assignment that breaks a rule.

    :raises UnsafeState: the assignment breaks a rule. Two clients might process one task, or no client might.
    """
    found = flaws(assignment, tasks, clients)
    if found:
        raise UnsafeState(
            "assignment",
            found="; ".join(map(str, found)),
            expected="every task active on exactly one of the clients, and standbys of stateful tasks elsewhere",
            remedy="Nothing has been assigned. Correct the assignor.",
        )


def _wrong_clients(assignment: Assignment, clients: Collection[str]) -> Iterator[Flaw]:
    for client in sorted(set(clients) - assignment.clients.keys()):
        yield Flaw(AssignmentError.MISSING_PROCESS_ID, f"client {client} has no assignment")
    for client in sorted(assignment.clients.keys() - set(clients)):
        yield Flaw(AssignmentError.UNKNOWN_PROCESS_ID, f"client {client} does not belong to the application")


def _wrong_tasks(assignment: Assignment, tasks: Tasks) -> Iterator[Flaw]:
    active: defaultdict[TaskId, list[str]] = defaultdict(list)
    known = tasks.all
    for client, has in sorted(assignment.clients.items()):
        for task in has.active:
            active[task].append(client)
        for task in sorted(has.all - known):
            yield Flaw(
                AssignmentError.UNKNOWN_TASK_ID,
                f"task {task} of client {client} does not belong to the application",
            )
        for task in sorted(set(has.standby) & tasks.stateless):
            yield Flaw(
                AssignmentError.INVALID_STANDBY_TASK, f"client {client} has a standby of stateless task {task}"
            )
        for task in sorted(set(has.standby) & set(has.active)):
            yield Flaw(
                AssignmentError.ACTIVE_AND_STANDBY_ON_ONE_CLIENT,
                f"client {client} has task {task} as active and as standby",
            )
    for task, holders in sorted(active.items()):
        if len(holders) > 1:
            found = f"task {task} is active on {', '.join(holders)}"
            yield Flaw(AssignmentError.ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES, found)
    for task in sorted(known - active.keys()):
        yield Flaw(AssignmentError.ACTIVE_TASK_MISSING, f"task {task} is active on no client")
