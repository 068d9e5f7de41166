"""The cases of Kafka Streams' ``TaskAssignorConvergenceTest``, each under its name, with its bounds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_rescale.core.assignment.assignment import Assignment
from kafka_rescale.core.assignment.configs import AssignmentConfigs

from tests.support.processing.assignments import assert_balanced, assert_valid, task_skew
from tests.support.processing.rebalances import Cluster, cluster, two_kinds


def assert_good(assignment: Assignment, done: Cluster) -> None:
    """Assert that the assignment is valid, and as even as possible."""
    assert_valid(assignment, done.tasks, done.configs.num_standby_replicas)
    assert_balanced(assignment, done.clients(), done.tasks.stateful)
    assert task_skew(assignment) <= 1


def test_static_assignment_should_converge_with_the_first_assignment() -> None:
    made = cluster(1, two_kinds(1, 1, 1), AssignmentConfigs(100))
    assert_good(made.converge(1)[0], made)


def test_assignment_should_converge_after_adding_node() -> None:
    made = cluster(1, two_kinds(7, 11), AssignmentConfigs(100, max_warmup_replicas=2))
    made.converge(1)
    made.add()
    assignment, rebalances = made.converge(11 // 2 + 1)
    assert_good(assignment, made)
    assert rebalances > 1


def test_dropping_nodes_should_converge() -> None:
    made = cluster(7, two_kinds(11, 13), AssignmentConfigs(100, max_warmup_replicas=2))
    made.converge(1)
    made.drop("c0000")
    assert_good(made.converge(13 // 2 + 2)[0], made)


counts = st.integers(1, 10)


@settings(max_examples=40, deadline=None)
@given(st.data(), counts, counts, counts, counts)
def test_random_cluster_perturbations_should_converge(
    data: st.DataObject, clients: int, stateless: int, stateful: int, partitions: int
) -> None:
    standbys = data.draw(st.integers(0, clients))
    configs = AssignmentConfigs(100, data.draw(st.integers(1, stateful)), standbys)
    made = cluster(clients, two_kinds(stateless, stateful, partitions), configs)
    assert_good(made.converge(1)[0], made)
    for _ in range(data.draw(counts)):
        if data.draw(st.booleans()):
            for _ in range(min(data.draw(st.integers(0, clients - 1)), len(made.running))):
                made.drop(data.draw(st.sampled_from(sorted(made.running))))
        else:
            for _ in range(data.draw(st.integers(0, clients - 1))):
                lost = sorted(made.dropped)
                made.resurrect(data.draw(st.sampled_from(lost))) if lost and data.draw(
                    st.booleans()
                ) else made.add()
        if made.running:
            assert_good(made.converge(2 * stateful * (1 + standbys))[0], made)


def test_a_cluster_that_can_not_converge_in_time_is_noticed() -> None:
    made = cluster(1, two_kinds(7, 11), AssignmentConfigs(100, max_warmup_replicas=2))
    made.converge(1)
    made.add()
    with pytest.raises(AssertionError, match="not converged after 2 rebalances"):
        made.converge(2)


def test_at_every_moment_of_a_scaling_out_each_task_runs_on_a_client_that_has_its_state() -> None:
    """The purpose of KIP-441: no task waits for a restore while a client has its state."""
    made = cluster(1, two_kinds(0, 11), AssignmentConfigs(100, max_warmup_replicas=2))
    made.converge(1)
    made.add()
    made.add()
    for _ in range(20):
        state = dict(made.running)
        assignment = made.rebalance()
        for name, has in assignment.clients.items():
            assert set(has.active) <= state[name]
        if not assignment.is_probing_rebalance_needed:
            break
    assert sorted(len(has.active) for has in assignment.clients.values()) == [3, 4, 4]
