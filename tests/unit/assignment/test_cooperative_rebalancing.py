"""KIP-429: a task that moves is revoked first and assigned afterwards. A task that stays is never stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_rescale.core.assignment.assignment import Assignment, ClientTasks
from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.cooperative import HandOver, hand_over
from kafka_rescale.core.assignment.high_availability import assign
from kafka_rescale.core.assignment.over_threads import over_threads
from kafka_rescale.core.assignment.tasks import Client, TaskId, Tasks

from tests.support.processing.assignments import ids

TASKS = ids("0_0 0_1 0_2 0_3")


def target(**active: str) -> Assignment:
    """An assignment of active tasks."""
    return Assignment({name: ClientTasks(ids(tasks)) for name, tasks in active.items()})


def names(per_client: Mapping[str, object]) -> dict[str, str]:
    """The names of the tasks that each client revokes or has active."""
    found = {name: has.active if isinstance(has, ClientTasks) else has for name, has in per_client.items()}
    return {name: " ".join(map(str, tasks)) for name, tasks in found.items()}  # type: ignore[call-overload]


def test_a_task_that_moves_is_revoked_first_and_assigned_in_the_second_rebalance() -> None:
    to_reach = target(a="0_0", b="0_1")
    first = hand_over({"a": ids("0_0 0_1"), "b": ()}, to_reach)
    assert names(first.revoke) == {"a": "0_1", "b": ""}
    assert names(first.assigned) == {"a": "0_0", "b": ""}
    assert first.is_follow_up_needed
    second = hand_over({"a": ids("0_0"), "b": ()}, to_reach)
    assert names(second.assigned) == {"a": "0_0", "b": "0_1"}
    assert not second.is_follow_up_needed


def test_a_rebalance_that_changes_nothing_interrupts_nobody() -> None:
    done = hand_over({"a": ids("0_0"), "b": ids("0_1")}, target(a="0_0", b="0_1"))
    assert names(done.revoke) == {"a": "", "b": ""}
    assert not done.is_follow_up_needed


def test_what_a_client_that_is_gone_had_is_free_at_once() -> None:
    done = hand_over({"a": ids("0_0")}, target(a="0_0 0_1"))
    assert names(done.assigned) == {"a": "0_0 0_1"}
    assert not done.is_follow_up_needed


def test_a_task_that_two_clients_claim_is_taken_from_both_first() -> None:
    to_reach = target(a="0_0", b="0_1")
    first = hand_over({"a": ids("0_0"), "b": ids("0_0 0_1")}, to_reach)
    assert names(first.revoke) == {"a": "0_0", "b": "0_0"}
    assert names(first.assigned) == {"a": "", "b": "0_1"}
    assert first.is_follow_up_needed


def test_a_client_that_is_leaving_gives_back_all_it_has() -> None:
    first = hand_over({"a": ids("0_0"), "b": ids("0_1")}, target(a="0_0 0_1"))
    assert names(first.revoke) == {"a": "", "b": "0_1"}
    assert first.is_follow_up_needed


def test_a_standby_begins_where_the_active_task_has_been_revoked() -> None:
    swapped = Assignment({"a": ClientTasks((), ids("0_0")), "b": ClientTasks(ids("0_0"))})
    first = hand_over({"a": ids("0_0"), "b": ()}, swapped)
    assert first.assigned["a"].standby == ()
    second = hand_over({"a": (), "b": ()}, swapped)
    assert second.assigned["a"].standby == ids("0_0")


def owned_after(step: HandOver) -> dict[str, tuple[TaskId, ...]]:
    """The tasks that the clients report at the next rebalance."""
    return {name: has.active for name, has in step.assigned.items()}


def most_owners(owned: Mapping[str, tuple[TaskId, ...]], assigned: Mapping[str, ClientTasks]) -> int:
    """The most clients that process one task, if a new owner begins before the old one knows that it must stop."""
    running = Counter(task for tasks in owned.values() for task in tasks)
    for name, has in assigned.items():
        running.update(set(has.active) - set(owned[name]))
    return max(running.values())


def test_an_assignment_in_one_step_could_give_a_task_two_owners() -> None:
    owned = {"a": ids("0_0 0_1"), "b": ()}
    to_reach = target(a="0_0", b="0_1")
    assert most_owners(owned, to_reach.clients) == 2
    assert most_owners(owned, hand_over(owned, to_reach).assigned) == 1


owners = st.fixed_dictionaries({task: st.sampled_from("abcd") for task in TASKS})


@settings(deadline=None)
@given(owners, owners)
def test_at_no_moment_has_a_task_two_owners_and_what_stays_is_never_interrupted(
    before: Mapping[TaskId, str], after: Mapping[TaskId, str]
) -> None:
    owned = {name: tuple(task for task in TASKS if before[task] == name) for name in "abcd"}
    to_reach = Assignment({name: ClientTasks(tuple(t for t in TASKS if after[t] == name)) for name in "abcd"})
    first = hand_over(owned, to_reach)
    assert most_owners(owned, first.assigned) == 1
    stays = {task for task in TASKS if before[task] == after[task]}
    assert all(task in first.assigned[after[task]].active for task in stays)
    assert first.is_follow_up_needed == (stays != set(TASKS))
    second = hand_over(owned_after(first), to_reach)
    assert owned_after(second) == {name: has.active for name, has in to_reach.clients.items()}
    assert not second.is_follow_up_needed


def test_scaling_out_stops_no_task_while_the_new_client_warms_up() -> None:
    """KIP-441 on top of KIP-429: the first rebalance after a client joins revokes nothing."""
    tasks = Tasks(dict.fromkeys(TASKS, 50_000))
    clients = [Client("a", lags=dict.fromkeys(TASKS, 0)), Client("b")]
    step = hand_over({"a": TASKS, "b": ()}, assign(tasks, clients, AssignmentConfigs()))
    assert names(step.revoke) == {"a": "", "b": ""}
    assert len(step.assigned["b"].standby) == AssignmentConfigs().max_warmup_replicas


def test_tasks_stay_with_their_thread_as_far_as_threads_have_equally_many() -> None:
    before = {"t1": ids("0_0 0_1"), "t2": ids("0_2 0_3")}
    assert over_threads(TASKS, ["t2", "t1"], before) == before
    assert over_threads(TASKS, ["t1"], before) == {"t1": TASKS}
    grown = over_threads(TASKS, ["t1", "t2", "t3"], before)
    assert grown == {"t1": ids("0_0 0_1"), "t2": ids("0_2"), "t3": ids("0_3")}
    assert over_threads((), ["t1"], before) == {"t1": ()}


@settings(deadline=None)
@given(
    st.sets(st.sampled_from([TaskId(s, p) for s in range(3) for p in range(4)])),
    st.sets(st.sampled_from("uvwxyz"), min_size=1),
    st.dictionaries(st.sampled_from("uvwxyz"), st.sets(st.sampled_from(TASKS))),
)
def test_a_clients_threads_have_equally_many_tasks_give_or_take_one(
    tasks: set[TaskId], threads: set[str], previous: Mapping[str, set[TaskId]]
) -> None:
    divided = over_threads(tasks, threads, previous)
    assert sorted(task for has in divided.values() for task in has) == sorted(tasks)
    sizes = [len(has) for has in divided.values()]
    assert max(sizes) - min(sizes) <= 1
    assert divided == over_threads(sorted(tasks, reverse=True), sorted(threads, reverse=True), previous)
