"""The assignor decides as Kafka Streams' own assignor does, for the same input."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
from kafka_rescale.core.assignment.assignment import ClientTasks
from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.high_availability import assign
from kafka_rescale.core.assignment.lags import LATEST_OFFSET, UNBOUNDED_LAG, UNKNOWN_OFFSET_SUM
from kafka_rescale.core.assignment.tasks import Client, Role, TaskId, Tasks
from kafka_rescale.core.assignment.thread_states import State, ThreadState

from tests.support.processing.kafka_streams_assignor import Scenario, decide, state_changes
from tests.support.processing.rebalances import cluster, two_kinds

pytestmark = pytest.mark.integration

END = 1000


def scenario(seed: int) -> Scenario:
    """Tasks, clients with any state, and configs."""
    chance = random.Random(seed)
    stateful = [TaskId(s, p) for s in range(chance.randint(1, 3)) for p in range(chance.randint(1, 12))]
    stateless = frozenset(TaskId(7, p) for p in range(chance.randint(0, 6)))
    lags = [0, 50, 100, 101, 500, END, LATEST_OFFSET, UNKNOWN_OFFSET_SUM]
    clients = [
        Client(
            f"c{n:02}",
            chance.randint(1, 4),
            {task: chance.choice(lags) for task in stateful if chance.random() < chance.choice([0.1, 0.5, 1])},
        )
        for n in range(chance.randint(1, 12))
    ]
    configs = AssignmentConfigs(
        chance.choice([0, 100, 100, 100, END, UNBOUNDED_LAG]), chance.randint(1, 4), chance.randint(0, 3)
    )
    return Tasks(dict.fromkeys(stateful, END), stateless), clients, configs


def differing(scenarios: list[Scenario], ours: list[Scenario]) -> list[int]:
    """Return the numbers of the scenarios for which Kafka Streams decides otherwise.

    If several standbys of one task shall move, Kafka Streams leaves open which of them gets the last warm-up,
    because its queue is ordered only by task. In such a scenario, only active tasks are compared.
    """
    found = []
    for number, (decided, mine) in enumerate(zip(decide(scenarios), (assign(*s) for s in ours), strict=True)):
        moved = Counter(move.task for move in mine.movements if move.role is Role.STANDBY)
        is_open = max(moved.values(), default=0) > 1
        clients = [_without_standbys(each) if is_open else each for each in (decided.clients, mine.clients)]
        if clients[0] != clients[1] or decided.is_probing_rebalance_needed != mine.is_probing_rebalance_needed:
            found.append(number)
    return found


def _without_standbys(clients: Mapping[str, ClientTasks]) -> Mapping[str, ClientTasks]:
    return {name: replace(has, standby=()) for name, has in clients.items()}


def test_the_assignment_is_the_one_of_kafka_streams_task_by_task() -> None:
    scenarios = [scenario(seed) for seed in range(300)]
    assert differing(scenarios, scenarios) == []


def test_a_difference_is_noticed() -> None:
    scenarios = [scenario(seed) for seed in range(40)]
    lazy = [(tasks, clients, replace(configs, num_standby_replicas=0)) for tasks, clients, configs in scenarios]
    wanted = {n for n, (_, clients, c) in enumerate(scenarios) if c.num_standby_replicas and len(clients) > 1}
    found = set(differing(scenarios, lazy))
    assert found <= wanted
    assert len(found) > len(wanted) / 2


def test_states_change_as_in_kafka_streams() -> None:
    clients, threads = state_changes()
    assert {str(a): [str(b) for b in State if a.may_become(b)] for a in State} == clients
    assert {str(a): [str(b) for b in ThreadState if a.may_become(b)] for a in ThreadState} == threads


@pytest.mark.slow
@pytest.mark.parametrize("standbys", [0, 1])
def test_ten_thousand_tasks_on_a_thousand_clients_converge_after_adding_node(
    standbys: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nearly every task moves, 5,000 at a time."""
    made = cluster(1_000, two_kinds(0, 10_000, 100), AssignmentConfigs(100, 5_000, standbys))
    made.converge(1)
    made.add()
    begin = time.perf_counter()
    _, rebalances = made.converge(10_000 * (1 + standbys) // 5_000 + 1)
    with capsys.disabled():
        seconds = time.perf_counter() - begin
        print(f"\na client joins, {standbys} standbys: {rebalances} rebalances in {seconds:.2f} s")


@pytest.mark.slow
@pytest.mark.parametrize("clients", [100, 300, 1_000])
def test_ten_tasks_per_client_converge_as_in_kafka_streams(
    clients: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two clients have swapped their disks.

    Only the first rebalance is compared, because Kafka Streams is slow.
    """
    made = cluster(clients, two_kinds(0, 10 * clients, 100), AssignmentConfigs(100, max_warmup_replicas=10))
    made.converge(1)
    made.running["c0050"], made.running["c0051"] = made.running["c0051"], made.running["c0050"]
    first = (made.tasks, made.clients(), made.configs)
    begin = time.perf_counter()
    ours = made.rebalance()
    seconds = time.perf_counter() - begin
    assert len(ours.movements) == 20
    assert made.converge(20 // 10 + 1)[1] == 2
    *_, theirs = decide([*map(scenario, range(100)), first], heap="3g", timeout=1100)
    assert theirs.clients == ours.clients
    with capsys.disabled():
        print(f"\n{10 * clients} tasks, {clients} clients: {seconds:.3f} s, Kafka Streams {theirs.seconds:.3f} s")
