"""Clients and tasks for tests of the assignors, and the rules that every assignment has to meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from kafka_rescale.core.assignment.assignment import Assignment
from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.high_availability import assign
from kafka_rescale.core.assignment.lags import UNBOUNDED_LAG
from kafka_rescale.core.assignment.tasks import Client, Role, TaskId, Tasks

NOTHING = UNBOUNDED_LAG
"""The lag of a client that has no state at all."""
NINE = "0_0 0_1 0_2 1_0 1_1 1_2 2_0 2_1 2_2"
SEVEN = "0_0 0_1 0_2 0_3 1_0 1_1 1_2"


def ids(names: str) -> tuple[TaskId, ...]:
    """Tasks from their names, separated by spaces."""
    return tuple(map(TaskId.parse, names.split()))


def tasks(stateful: str = "", stateless: str = "") -> Tasks:
    """Tasks by name. For each stateful task, a client without state would have to restore everything."""
    return Tasks(dict.fromkeys(ids(stateful), NOTHING), frozenset(ids(stateless)))


def client(name: str, lag: int | None = None, of: str = "", *, threads: int = 1, **lags: int) -> Client:
    """A client that is ``lag`` behind on some tasks.

    :param lags: lags of single tasks, as ``t0_1=5``.
    """
    known = {} if lag is None else dict.fromkeys(ids(of), lag)
    known |= {TaskId.parse(task.removeprefix("t")): each for task, each in lags.items()}
    return Client(name, threads, known)


def assigned(all_tasks: Tasks, clients: Collection[Client], configs: AssignmentConfigs) -> Assignment:
    """Return the assignment, and assert that the order of its input makes no difference."""
    assignment = assign(all_tasks, clients, configs)
    assert assignment == assign(reordered(all_tasks), [_reordered(c) for c in reversed(list(clients))], configs)
    return assignment


def reordered(all_tasks: Tasks) -> Tasks:
    """The same tasks, the last one first."""
    return Tasks(dict(reversed(all_tasks.stateful.items())), frozenset(reversed(sorted(all_tasks.stateless))))


def _reordered(one: Client) -> Client:
    return Client(one.id, one.threads, dict(reversed(one.lags.items())), dict(reversed(one.tags.items())))


def active(assignment: Assignment, name: str) -> str:
    """Names of a client's active tasks."""
    return " ".join(map(str, assignment.clients[name].active))


def standby(assignment: Assignment, name: str) -> str:
    """Names of a client's standbys."""
    return " ".join(map(str, assignment.clients[name].standby))


def counts(assignment: Assignment, role: Role | None = None) -> list[int]:
    """How many tasks each client has, in one role or in both roles together."""
    return [
        len(has.all if role is None else has.active if role is Role.ACTIVE else has.standby)
        for has in assignment.clients.values()
    ]


def assert_valid(assignment: Assignment, all_tasks: Tasks, standbys: int = 0, warm_ups: int = 0) -> None:
    """Assert that each task is active once and has enough standbys, and that warm-ups are within the budget.

    Enough standbys are the configured number, or fewer if there are fewer clients.
    """
    has_active = Counter(task for has in assignment.clients.values() for task in has.active)
    has_standby = Counter(task for has in assignment.clients.values() for task in has.standby)
    assert has_active == Counter(all_tasks.all)
    assert not all_tasks.stateless & has_standby.keys()
    assert all(len(has.all) == len(has.active) + len(has.standby) for has in assignment.clients.values())
    expected = min(len(assignment.clients), 1 + standbys)
    beyond = {task: 1 + has_standby[task] - expected for task in all_tasks.stateful}
    # One task may have two warm-ups: one where it will be active, and one where a standby will be.
    assert min(beyond.values(), default=0) >= 0, beyond
    assert sum(beyond.values()) <= warm_ups


def assert_balanced(
    assignment: Assignment, clients: Iterable[Client], stateful: Collection[TaskId] | None = None
) -> None:
    """Assert that the load per thread differs by at most one between any two clients.

    This holds for active tasks, and for active tasks and standbys of stateful tasks together.

    :param stateful: the stateful tasks. ``None`` means all tasks.
    """
    threads = {each.id: each.threads for each in clients}
    assert_active_balanced(assignment, clients)
    assert_even(
        sum(stateful is None or task in stateful for task in has.all) / threads[name]
        for name, has in assignment.clients.items()
    )


def assert_active_balanced(assignment: Assignment, clients: Iterable[Client]) -> None:
    """Assert that the active tasks per thread differ by at most one between any two clients."""
    threads = {each.id: each.threads for each in clients}
    assert_even(len(has.active) / threads[name] for name, has in assignment.clients.items())


def assert_even(loads: Iterable[float]) -> None:
    """Assert that no load is above another load by more than 1."""
    found = list(loads)
    assert max(found) - min(found) <= 1.0, found


def task_skew(assignment: Assignment) -> int:
    """Return the largest difference between two clients in active tasks of one sub-topology."""
    per_client = {
        name: Counter(task.subtopology for task in has.active) for name, has in assignment.clients.items()
    }
    subtopologies = {each for count in per_client.values() for each in count}
    return max(
        (
            max(count[each] for count in per_client.values()) - min(count[each] for count in per_client.values())
            for each in subtopologies
        ),
        default=0,
    )


def copies(assignment: Assignment, task: TaskId) -> Mapping[str, Role]:
    """Return the clients that have a task, and in which role."""
    return {name: role for role in Role for name in assignment.holders(task, role)}
