"""The cases of Kafka Streams' ``HighAvailabilityTaskAssignorTest``, each under its name, without KIP-925."""

from __future__ import annotations

import random

import pytest
from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.lags import UNBOUNDED_LAG
from kafka_rescale.core.assignment.tasks import Client, Role, TaskId, Tasks
from kafka_rescale.core.errors import InvalidInput

from tests.support.processing.assignments import (
    NINE,
    NOTHING,
    SEVEN,
    active,
    assert_active_balanced,
    assert_balanced,
    assert_valid,
    assigned,
    client,
    counts,
    ids,
    standby,
    task_skew,
    tasks,
)

STRICT = AssignmentConfigs(acceptable_recovery_lag=0, max_warmup_replicas=1)
WITHOUT_STANDBYS = AssignmentConfigs(acceptable_recovery_lag=100)
WITH_STANDBYS = AssignmentConfigs(acceptable_recovery_lag=100, num_standby_replicas=1)
FOUR = "0_0 0_1 0_2 0_3"
TWO_BY_TWO = "0_0 0_1 1_0 1_1"


def three(lag: int, of: str, threads: tuple[int, int, int] = (1, 1, 1)) -> list[Client]:
    """Three clients that are equally far behind."""
    return [client(f"c{n}", lag, of, threads=each) for n, each in enumerate(threads, start=1)]


def test_should_be_sticky_for_active_and_standby_tasks_while_warming_up() -> None:
    clients = [client("c1", 0, NINE), client("c2", 10, NINE), client("c3", NOTHING, NINE)]
    configs = AssignmentConfigs(acceptable_recovery_lag=11, max_warmup_replicas=2, num_standby_replicas=1)
    assignment = assigned(tasks(NINE), clients, configs)
    assert counts(assignment) == [9, 9, 2]
    assert assignment.is_probing_rebalance_needed


def test_should_skip_warmups_when_acceptable_lag_is_max() -> None:
    clients = [client("c1", 0, NINE), client("c2", NOTHING, NINE), client("c3", NOTHING, NINE)]
    configs = AssignmentConfigs(UNBOUNDED_LAG, max_warmup_replicas=1, num_standby_replicas=1)
    assignment = assigned(tasks(NINE), clients, configs)
    assert counts(assignment) == [6, 6, 6]
    assert not assignment.is_probing_rebalance_needed


def assert_all_even(names: str, clients: list[Client]) -> None:
    """Assert that the assignment is even, for clients that are equally far behind."""
    assignment = assigned(tasks(names), clients, STRICT)
    assert not assignment.is_probing_rebalance_needed
    assert_valid(assignment, tasks(names))
    assert_balanced(assignment, clients)
    assert task_skew(assignment) <= 1


def test_should_assign_active_stateful_tasks_evenly_over_clients_where_number_of_clients_integral_divisor_of_number_of_tasks() -> (  # noqa: E501
    None
):
    assert_all_even(NINE, three(10, NINE))


def test_should_assign_active_stateful_tasks_evenly_over_clients_where_number_of_threads_integral_divisor_of_number_of_tasks() -> (  # noqa: E501
    None
):
    assert_all_even(NINE, three(10, NINE, (3, 3, 3)))


def test_should_assign_active_stateful_tasks_evenly_over_clients_where_number_of_clients_not_integral_divisor_of_number_of_tasks() -> (  # noqa: E501
    None
):
    assert_all_even(NINE, three(10, NINE)[:2])


def test_should_assign_active_stateful_tasks_evenly_over_unevenly_distributed_stream_threads() -> None:
    six = "0_0 0_1 0_2 1_0 1_1 1_2"
    clients = three(10, six, (1, 2, 3))
    assignment = assigned(tasks(six), clients, STRICT)
    assert not assignment.is_probing_rebalance_needed
    assert_valid(assignment, tasks(six))
    assert_balanced(assignment, clients)
    assert counts(assignment, Role.ACTIVE) == [1, 2, 3]
    assert task_skew(assignment) > 1


def test_should_assign_active_stateful_tasks_evenly_over_clients_with_more_clients_than_tasks() -> None:
    assert_all_even("0_0 0_1", three(10, "0_0 0_1"))


def test_should_assign_active_stateful_tasks_evenly_over_clients_and_stream_threads_with_equal_stream_threads_per_client_as_tasks() -> (  # noqa: E501
    None
):
    assert_all_even(NINE, three(10, NINE, (9, 9, 9)))


def test_should_assign_warm_up_tasks_if_stateful_active_tasks_balanced_over_stream_threads_but_not_over_clients() -> (  # noqa: E501
    None
):
    clients = [
        client("c1", 0, TWO_BY_TWO, threads=5),
        client("c2", NOTHING, TWO_BY_TWO, threads=5),
        client("c3", NOTHING, TWO_BY_TWO, threads=5),
    ]
    assignment = assigned(tasks(TWO_BY_TWO), clients, AssignmentConfigs(0, max_warmup_replicas=2))
    assert assignment.is_probing_rebalance_needed
    assert min(counts(assignment, Role.STANDBY)[1:]) >= 1
    assert_valid(assignment, tasks(TWO_BY_TWO), warm_ups=2)


def test_should_evenly_assign_active_stateful_tasks_if_clients_are_warmed_up_to_balance_task_over_clients() -> (
    None
):
    clients = [
        client("c1", 0, TWO_BY_TWO, threads=5),
        client("c2", NOTHING, TWO_BY_TWO, threads=5, t0_1=0),
        client("c3", NOTHING, TWO_BY_TWO, threads=5, t1_0=0),
    ]
    assignment = assigned(tasks(TWO_BY_TWO), clients, AssignmentConfigs(0, max_warmup_replicas=2))
    assert not assignment.is_probing_rebalance_needed
    assert_valid(assignment, tasks(TWO_BY_TWO))
    assert_balanced(assignment, clients)
    assert task_skew(assignment) <= 1


def test_should_assign_active_stateful_tasks_evenly_over_stream_threads_but_best_effort_over_clients() -> None:
    clients = [client("c1", 10, NINE, threads=6), client("c2", 10, NINE, threads=3)]
    assignment = assigned(tasks(NINE), clients, STRICT)
    assert not assignment.is_probing_rebalance_needed
    assert_valid(assignment, tasks(NINE))
    assert_balanced(assignment, clients)
    assert counts(assignment, Role.ACTIVE) == [6, 3]


def test_should_compute_new_assignment_if_there_are_unassigned_active_tasks() -> None:
    clients = [client("c1", t0_0=0)]
    all_tasks = tasks("0_0", "0_1")
    assignment = assigned(all_tasks, clients, WITHOUT_STANDBYS)
    assert not assignment.is_probing_rebalance_needed
    assert (active(assignment, "c1"), standby(assignment, "c1")) == ("0_0 0_1", "")
    assert_valid(assignment, all_tasks)


def test_should_compute_new_assignment_if_there_are_unassigned_standby_tasks() -> None:
    clients = [client("c1", t0_0=0), client("c2", t0_0=0)]
    assignment = assigned(tasks("0_0"), clients, WITH_STANDBYS)
    assert standby(assignment, "c2") == "0_0"
    assert not assignment.is_probing_rebalance_needed
    assert_valid(assignment, tasks("0_0"), standbys=1)
    assert_balanced(assignment, clients)


def test_should_compute_new_assignment_if_active_tasks_was_not_on_caught_up_client() -> None:
    clients = [client("c1", t0_0=500), client("c2", t0_0=0)]
    all_tasks = tasks("0_0", "0_1")
    assignment = assigned(all_tasks, clients, WITHOUT_STANDBYS)
    assert (active(assignment, "c1"), active(assignment, "c2")) == ("0_1", "0_0")
    assert assignment.is_probing_rebalance_needed
    assert_valid(assignment, all_tasks, warm_ups=1)
    assert_balanced(assignment, clients)
    assert task_skew(assignment) <= 1


def test_should_assign_to_most_caught_up_if_active_tasks_was_not_on_caught_up_client() -> None:
    clients = [client("c1", t0_0=NOTHING), client("c2", t0_0=1000), client("c3", t0_0=500)]
    assignment = assigned(tasks("0_0"), clients, WITH_STANDBYS)
    assert [active(assignment, c) for c in ("c1", "c2", "c3")] == ["", "", "0_0"]
    assert [standby(assignment, c) for c in ("c1", "c2", "c3")] == ["0_0", "0_0", ""]
    assert assignment.warm_ups("c1") == {TaskId(0, 0)}
    assert assignment.warm_ups("c2") == frozenset()
    assert assignment.is_probing_rebalance_needed
    assert_valid(assignment, tasks("0_0"), standbys=1, warm_ups=1)
    assert_balanced(assignment, clients)


def test_should_assign_standbys_for_stateful_tasks() -> None:
    clients = [client("c1", t0_0=0, t0_1=NOTHING), client("c2", t0_0=NOTHING, t0_1=0)]
    assignment = assigned(tasks("0_0 0_1"), clients, WITH_STANDBYS)
    assert (active(assignment, "c1"), active(assignment, "c2")) == ("0_0", "0_1")
    assert (standby(assignment, "c1"), standby(assignment, "c2")) == ("0_1", "0_0")
    assert not assignment.is_probing_rebalance_needed


def test_should_not_assign_standbys_for_stateless_tasks() -> None:
    assignment = assigned(tasks("", "0_0 0_1"), [client("c1"), client("c2")], WITH_STANDBYS)
    assert counts(assignment, Role.ACTIVE) == [1, 1]
    assert counts(assignment, Role.STANDBY) == [0, 0]
    assert not assignment.is_probing_rebalance_needed


def one_has_all(names: str, others: int = 1) -> list[Client]:
    """The first client is caught up on everything, and the others have no state."""
    return [client("c1", 0, names), *(client(f"c{n + 2}", NOTHING, names) for n in range(others))]


def test_should_assign_warmup_replicas_even_if_no_standby_replicas_configured() -> None:
    assignment = assigned(tasks("0_0 0_1"), one_has_all("0_0 0_1"), WITHOUT_STANDBYS)
    assert (active(assignment, "c1"), standby(assignment, "c1")) == ("0_0 0_1", "")
    assert counts(assignment, Role.STANDBY) == [0, 1]
    assert active(assignment, "c2") == ""
    assert assignment.is_probing_rebalance_needed


def test_should_not_assign_more_than_max_warmup_replicas() -> None:
    assignment = assigned(tasks(FOUR), one_has_all(FOUR), AssignmentConfigs(100, max_warmup_replicas=1))
    assert (active(assignment, "c1"), active(assignment, "c2")) == (FOUR, "")
    assert counts(assignment, Role.STANDBY) == [0, 1]
    assert assignment.is_probing_rebalance_needed


def test_should_not_assign_warmup_and_standby_to_the_same_client() -> None:
    configs = AssignmentConfigs(100, max_warmup_replicas=1, num_standby_replicas=1)
    assignment = assigned(tasks(FOUR), one_has_all(FOUR), configs)
    assert (active(assignment, "c1"), active(assignment, "c2")) == (FOUR, "")
    assert (standby(assignment, "c1"), standby(assignment, "c2")) == ("", FOUR)
    assert assignment.is_probing_rebalance_needed


def test_should_not_assign_any_standbys_with_insufficient_capacity() -> None:
    assignment = assigned(tasks("0_0 0_1"), one_has_all("0_0 0_1", others=0), WITH_STANDBYS)
    assert (active(assignment, "c1"), standby(assignment, "c1")) == ("0_0 0_1", "")
    assert not assignment.is_probing_rebalance_needed


def test_should_assign_active_tasks_to_not_caught_up_client_if_none_exist() -> None:
    assignment = assigned(tasks("0_0 0_1"), [client("c1", NOTHING, "0_0 0_1")], WITH_STANDBYS)
    assert (active(assignment, "c1"), standby(assignment, "c1")) == ("0_0 0_1", "")
    assert not assignment.is_probing_rebalance_needed


def test_should_not_assign_more_than_max_warmup_replicas_with_standbys() -> None:
    assignment = assigned(tasks(FOUR), one_has_all(FOUR, others=2), WITH_STANDBYS)
    assert_valid(assignment, tasks(FOUR), standbys=1, warm_ups=2)
    assert assignment.is_probing_rebalance_needed


def test_should_distribute_stateless_tasks_to_balance_total_task_load() -> None:
    all_tasks = tasks(FOUR, "1_0 1_1 1_2")
    clients = one_has_all(FOUR)
    assignment = assigned(all_tasks, clients, WITH_STANDBYS)
    assert_valid(assignment, all_tasks, standbys=1, warm_ups=2)
    assert_balanced(assignment, clients, all_tasks.stateful)
    assert task_skew(assignment) > 1, "c1 has all active stateful tasks, hence c2 all stateless ones"
    assert assignment.is_probing_rebalance_needed


def test_should_distribute_stateful_active_tasks_to_all_clients() -> None:
    nine = "0_0 0_1 0_2 0_3 1_0 1_1 1_2 1_3 2_0"
    assignment = assigned(tasks(nine), three(0, nine, (100, 50, 1)), WITHOUT_STANDBYS)
    assert min(counts(assignment, Role.ACTIVE)) > 0
    assert not assignment.is_probing_rebalance_needed


def test_should_return_false_if_previous_assignment_is_reused() -> None:
    clients = [
        client("c1", NOTHING, FOUR, t0_0=0, t0_2=0),
        client("c2", NOTHING, FOUR, t0_1=0, t0_3=0),
    ]
    assignment = assigned(tasks(FOUR), clients, WITHOUT_STANDBYS)
    assert not assignment.is_probing_rebalance_needed
    assert (active(assignment, "c1"), active(assignment, "c2")) == ("0_0 0_2", "0_1 0_3")


def test_should_return_false_if_no_warmup_tasks_are_assigned() -> None:
    assignment = assigned(tasks("", FOUR), [client("c1"), client("c2")], WITHOUT_STANDBYS)
    assert not assignment.is_probing_rebalance_needed
    assert counts(assignment, Role.STANDBY) == [0, 0]


def test_should_return_true_if_warmup_tasks_are_assigned() -> None:
    assignment = assigned(tasks("0_0 0_1"), one_has_all("0_0 0_1"), WITHOUT_STANDBYS)
    assert assignment.is_probing_rebalance_needed
    assert counts(assignment, Role.STANDBY) == [0, 1]


def assert_stateless_even(threads: tuple[int, int, int]) -> None:
    """Assert that seven stateless tasks are assigned evenly to clients with so many threads."""
    clients = [client(f"c{n}", threads=each) for n, each in enumerate(threads)]
    assignment = assigned(tasks("", SEVEN), clients, STRICT)
    assert_valid(assignment, tasks("", SEVEN))
    assert_balanced(assignment, clients)
    assert not assignment.is_probing_rebalance_needed


def test_should_distribute_stateless_tasks_evenly_over_clients_with_equal_stream_threads_per_client_as_tasks_and_no_stateful_tasks() -> (  # noqa: E501
    None
):
    assert_stateless_even((7, 7, 7))


def test_should_distribute_stateless_tasks_evenly_over_clients_with_less_stream_threads_per_client_as_tasks_and_no_stateful_tasks() -> (  # noqa: E501
    None
):
    assert_stateless_even((2, 2, 2))


def test_should_distribute_stateless_tasks_evenly_over_clients_with_unevenly_distributed_stream_threads_and_no_stateful_tasks() -> (  # noqa: E501
    None
):
    assert_stateless_even((1, 2, 3))


def test_should_distribute_stateless_tasks_evenly_with_previous_assignment_and_no_stateful_tasks() -> None:
    """The previous owner of a stateless task does not matter. It is not even an input."""
    assert_stateless_even((3, 3, 3))


def random_input(seed: int) -> tuple[Tasks, list[Client]]:
    """180 tasks, some of them stateful, and 50 clients of 1 to 3 threads that are caught up on everything."""
    chance = random.Random(seed)
    everything = [TaskId(s, p) for s in range(60) for p in range(3)]
    stateful = chance.sample(everything, chance.randint(1, 179))
    all_tasks = Tasks(dict.fromkeys(stateful, NOTHING), frozenset(everything) - frozenset(stateful))
    lags = dict.fromkeys(stateful, 0)
    return all_tasks, [Client(f"c{n:02}", chance.randint(1, 3), lags) for n in range(50)]


@pytest.mark.parametrize("seed", range(5))
def test_should_assign_random_input(seed: int) -> None:
    all_tasks, clients = random_input(seed)
    assignment = assigned(all_tasks, clients, AssignmentConfigs(100, num_standby_replicas=3))
    assert_valid(assignment, all_tasks, standbys=3)
    assert_active_balanced(assignment, clients)


@pytest.mark.parametrize("seed", range(5))
def test_should_remain_original_assignment_without_traffic_cost_for_min_cost_strategy(seed: int) -> None:
    """Without a traffic cost (KIP-925), a second assignment is equal to the first one."""
    all_tasks, clients = random_input(seed)
    configs = AssignmentConfigs(0, max_warmup_replicas=1, num_standby_replicas=1)
    assignment = assigned(all_tasks, clients, configs)
    assert_valid(assignment, all_tasks, standbys=1)
    again = [
        Client(c.id, c.threads, dict.fromkeys(assignment.clients[c.id].all & all_tasks.stateful.keys(), 0))
        for c in clients
    ]
    assert assigned(all_tasks, again, configs) == assignment


def test_a_task_that_is_not_assigned_twice_or_missing_is_what_the_checks_look_for() -> None:
    assignment = assigned(tasks(FOUR), one_has_all(FOUR), WITHOUT_STANDBYS)
    with pytest.raises(AssertionError):
        assert_valid(assignment, tasks(NINE), warm_ups=2)
    with pytest.raises(AssertionError):
        assert_valid(assignment, tasks(FOUR))
    with pytest.raises(AssertionError):
        assert_balanced(assignment, one_has_all(FOUR))


@pytest.mark.parametrize(
    ("clients", "found"),
    [
        ([], "no client"),
        ([client("a"), client("b"), client("a")], "several clients called a"),
        ([client("a", threads=0)], "no stream thread of a"),
    ],
)
def test_clients_that_can_run_nothing_are_refused(clients: list[Client], found: str) -> None:
    with pytest.raises(InvalidInput) as error:
        assigned(tasks(FOUR), clients, STRICT)
    assert error.value.found == found


def test_a_task_that_runs_stays_where_it_is_however_much_is_written() -> None:
    """The lag of a running task is ``LATEST_OFFSET``. Another client that has not read lately is not caught up."""
    clients = [client("c1", 101, FOUR), client("c2", -2, FOUR)]
    assignment = assigned(tasks(FOUR), clients, AssignmentConfigs(100, max_warmup_replicas=1))
    assert active(assignment, "c2") == FOUR


def test_tasks_of_other_applications_in_a_clients_directory_are_passed_over() -> None:
    assignment = assigned(tasks("0_0"), [client("c1", 0, NINE), client("c2", 0, NINE)], WITH_STANDBYS)
    assert_valid(assignment, tasks("0_0"), standbys=1)
    assert ids("0_0") == assignment.clients["c1"].active
