"""The cases of Kafka Streams' ``TaskMovementTest``, each under its name."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_rescale.core.assignment.assignment import Movement
from kafka_rescale.core.assignment.draft import Draft
from kafka_rescale.core.assignment.lags import Lags
from kafka_rescale.core.assignment.movements import TaskMovements
from kafka_rescale.core.assignment.tasks import Client, Role, TaskId

from tests.support.processing.assignments import NOTHING, client, ids

ENDLESS = 2**31 - 1
SIX = "0_0 0_1 0_2 1_0 1_1 1_2"
THREE = "0_0 0_1 0_2"


def moved(draft: Draft, clients: list[Client], warm_ups: int) -> list[Movement]:
    """The movements if a client may be 100 records behind."""
    ends = {task: NOTHING for each in clients for task in each.lags}
    return TaskMovements(draft, Lags(ends, clients, acceptable=100), warm_ups).move_active()


def draft_of(clients: list[Client], active: Mapping[str, str]) -> Draft:
    """A draft with these active tasks."""
    draft = Draft(clients)
    for name, tasks in active.items():
        for task in ids(tasks):
            draft.assign(name, task, Role.ACTIVE)
    return draft


def has(draft: Draft, role: Role) -> dict[str, str]:
    """The names of all tasks in a role, per client."""
    return {name: " ".join(map(str, sorted(draft.tasks(name, role)))) for name in draft}


def crossed() -> list[Client]:
    """Two clients, c2 and c3: each is caught up on the tasks that the other shall get."""
    return [
        client("c1", 10_000, THREE, t0_0=0),
        client("c2", 10_000, THREE, t0_2=0),
        client("c3", 10_000, THREE, t0_1=0),
    ]


ONE_EACH = {"c1": "0_0", "c2": "0_1", "c3": "0_2"}
TWO_EACH = {"c1": "0_0 1_0", "c2": "0_1 1_1", "c3": "0_2 1_2"}


def test_should_assign_tasks_to_clients_and_return_false_when_all_clients_caught_up() -> None:
    clients = [client(name, 0, SIX) for name in TWO_EACH]
    draft = draft_of(clients, TWO_EACH)
    assert moved(draft, clients, ENDLESS) == []
    assert has(draft, Role.ACTIVE) == TWO_EACH


def test_should_assign_all_tasks_to_clients_and_return_false_if_no_clients_are_caught_up() -> None:
    clients = [client(name, 10_000, SIX) for name in TWO_EACH]
    draft = draft_of(clients, TWO_EACH)
    assert moved(draft, clients, ENDLESS) == []
    assert has(draft, Role.ACTIVE) == TWO_EACH


def test_should_move_tasks_to_caught_up_clients_and_assign_warmup_replicas_in_their_place() -> None:
    draft = draft_of(crossed(), ONE_EACH)
    assert len(moved(draft, crossed(), ENDLESS)) == 2
    assert has(draft, Role.ACTIVE) == {"c1": "0_0", "c2": "0_2", "c3": "0_1"}
    assert has(draft, Role.STANDBY) == {"c1": "", "c2": "0_1", "c3": "0_2"}


def test_should_move_tasks_to_most_caught_up_clients_and_assign_warmup_replicas_in_their_place() -> None:
    clients = [
        client("c1", t0_0=10_000, t0_1=20_000, t0_2=30_000),
        client("c2", t0_0=20_000, t0_1=30_000, t0_2=10_000),
        client("c3", t0_0=30_000, t0_1=10_000, t0_2=20_000),
    ]
    draft = draft_of(clients, ONE_EACH)
    draft.assign("c3", TaskId(0, 1), Role.STANDBY)
    movements = moved(draft, clients, ENDLESS)
    assert [m.is_swap for m in movements] == [True, False]
    assert has(draft, Role.ACTIVE) == {"c1": "0_0", "c2": "0_2", "c3": "0_1"}
    assert has(draft, Role.STANDBY) == {"c1": "", "c2": "0_1", "c3": "0_2"}


def test_should_only_get_up_to_max_warmup_replicas_and_return_true() -> None:
    draft = draft_of(crossed(), ONE_EACH)
    movements = moved(draft, crossed(), warm_ups=1)
    assert [m.is_warming_up for m in movements] == [True, False]
    assert has(draft, Role.ACTIVE) == {"c1": "0_0", "c2": "0_2", "c3": "0_1"}
    assert has(draft, Role.STANDBY) == {"c1": "", "c2": "0_1", "c3": ""}


def test_should_not_count_previous_standby_tasks_towards_max_warmup_replicas() -> None:
    clients = [client("c1", t0_0=0), client("c2", t0_0=10_000)]
    draft = draft_of(clients, {"c2": "0_0"})
    draft.assign("c1", TaskId(0, 0), Role.STANDBY)
    assert moved(draft, clients, warm_ups=0) == [
        Movement(TaskId(0, 0), Role.ACTIVE, "c1", "c2", is_warming_up=True, is_swap=True)
    ]
    assert has(draft, Role.ACTIVE) == {"c1": "0_0", "c2": ""}
    assert has(draft, Role.STANDBY) == {"c1": "", "c2": "0_0"}


def test_the_task_that_the_fewest_clients_could_take_moves_first() -> None:
    clients = [client("c1", t0_0=0, t0_1=0), client("c2", t0_0=0), client("c3", t0_0=10_000, t0_1=10_000)]
    draft = draft_of(clients, {"c3": "0_0 0_1"})
    movements = moved(draft, clients, warm_ups=1)
    assert [(str(m.task), m.runs_on, m.is_warming_up) for m in movements] == [
        ("0_1", "c1", True),
        ("0_0", "c2", False),
    ]
