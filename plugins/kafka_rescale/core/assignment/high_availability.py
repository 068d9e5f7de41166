"""An assignor that interrupts no task for a restore (KIP-441, ``HighAvailabilityTaskAssignor``)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import cycle

from kafka_rescale.core.assignment.assignment import Assignment, assignment_of
from kafka_rescale.core.assignment.balance import balance
from kafka_rescale.core.assignment.client_tags import standby_task_assignor
from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.draft import Draft, LeastLoaded
from kafka_rescale.core.assignment.lags import Lags
from kafka_rescale.core.assignment.movements import TaskMovements
from kafka_rescale.core.assignment.standby_assignors import StandbyTaskAssignor
from kafka_rescale.core.assignment.tasks import Client, Role, TaskId, Tasks
from kafka_rescale.core.errors import InvalidInput


def assign(
    tasks: Tasks,
    clients: Collection[Client],
    configs: AssignmentConfigs,
    standby_assignor: StandbyTaskAssignor | None = None,
) -> Assignment:
    """Return the tasks of each client. The same input gives the same result, whatever its order.

    1. The assignor balances active stateful tasks over clients and their threads. It ignores who has state.
    2. It adds standbys.
    3. A client may get a task on which it is not caught up, while another client is. Then the other client keeps
       the task, and the first client warms it up. At most ``max.warmup.replicas`` tasks are warmed up at a time.
    4. Stateless tasks fill up the clients with the fewest active tasks.

    :param standby_assignor: the assignor of the standbys, if it is not the one that the configs ask for.
    :raises InvalidInput: there is no client, two clients have the same id, or a client has no thread.
    """
    _check(clients)
    draft = Draft(clients)
    _assign_active(draft, tasks.stateful)
    missing: Mapping[TaskId, int] = {}
    if configs.num_standby_replicas:
        standbys = standby_assignor or standby_task_assignor(configs)
        missing = standbys.assign(draft, tasks.stateful, configs)
        balance(
            draft,
            Role.STANDBY,
            lambda source, to: standbys.is_allowed_movement(draft.clients[source], draft.clients[to]),
        )
    lags = Lags(tasks.stateful, list(clients), configs.acceptable_recovery_lag)
    movements = TaskMovements(draft, lags, configs.max_warmup_replicas)
    moved = movements.move_active()
    moved += movements.move_standby(moved)
    _assign_stateless(draft, tasks.stateless)
    return assignment_of(draft, moved, missing)


def _assign_active(draft: Draft, stateful: Collection[TaskId]) -> None:
    for task, client in zip(sorted(stateful), cycle(draft), strict=False):
        draft.assign(client, task, Role.ACTIVE)
    balance(draft, Role.ACTIVE, lambda source, to: True)


def _assign_stateless(draft: Draft, stateless: Collection[TaskId]) -> None:
    clients = LeastLoaded(draft, draft.active_load)
    for task in sorted(stateless):
        client = clients.pick(lambda _: True)
        if client is not None:
            draft.assign(client, task, Role.ACTIVE)


def _check(clients: Collection[Client]) -> None:
    ids = [client.id for client in clients]
    doubled = sorted({each for each in ids if ids.count(each) > 1}) if len(set(ids)) < len(ids) else []
    idle = sorted(client.id for client in clients if client.threads < 1)
    problem = (
        "no client"
        if not ids
        else f"several clients called {', '.join(doubled)}"
        if doubled
        else f"no stream thread of {', '.join(idle)}"
        if idle
        else None
    )
    if problem:
        raise InvalidInput(
            "clients of the application",
            found=problem,
            expected="at least one client, each with an id of its own and one stream thread or more",
            remedy="Start a client, or leave out the clients that have no stream thread.",
        )
