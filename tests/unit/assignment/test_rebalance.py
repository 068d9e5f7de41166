"""Rebalances of a pipeline's clients: who takes part, what is handed over, and what happens to dead clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.stream_threads import Decision
from kafka_rescale.core.assignment.tasks import TaskId, Tasks
from kafka_rescale.core.assignment.thread_states import State, ThreadState
from kafka_rescale.core.control.processing import ClientRecord, Processing
from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.core.processing.adjustments import (
    NOTHING_ASKED,
    REMEMBERED,
    Adjusted,
    Adjustments,
    adjusted,
    changed_by,
    clients_removed,
    clients_started,
    still_asked,
    thread_added,
    thread_removed,
)
from kafka_rescale.core.processing.dead_threads import thread_died
from kafka_rescale.core.processing.rebalance import Member, Rebalance

from tests.support.processing.rack_rule import WestOnly

END = 100
STATEFUL = [TaskId(0, p) for p in range(4)]
TASKS = Tasks(dict.fromkeys(STATEFUL, END), frozenset(TaskId(1, p) for p in range(2)))
CONFIGS = AssignmentConfigs(acceptable_recovery_lag=10, num_standby_replicas=1)
A, B, C = (Member(name, 2, f"/{name}") for name in "abc")


def having(member: Member, tasks: str, lag: int = 0, *, threads: int | None = None) -> Member:
    """The member with state of some tasks."""
    lags = {TaskId.parse(task): lag for task in tasks.split()}
    return Member(member.client_id, threads or member.num_stream_threads, member.state_dir, member.tags, lags)


def gone(member: Member) -> Member:
    return Member(member.client_id, member.num_stream_threads, member.state_dir, absent="no such directory")


def rebalanced(
    before: Processing | None, *members: Member, run: str = "run", at_work: tuple[str, ...] = ()
) -> Processing:
    return Rebalance(run, 1_000, TASKS, members, CONFIGS).of(before, at_work)


def places(processing: Processing) -> Mapping[str, tuple[str, str]]:
    """Active tasks and standbys by client."""
    return {c.client_id: (" ".join(map(str, c.active)), " ".join(c.standbys)) for c in processing.clients}


def record(processing: Processing, client: str) -> ClientRecord:
    found = processing.client(client)
    assert found is not None
    return found


FIRST = rebalanced(None, A, B)


def test_every_task_is_active_on_one_client_with_a_standby_on_another() -> None:
    assert places(FIRST) == {"a": ("0_0 0_2 1_0", "0_1 0_3"), "b": ("0_1 0_3 1_1", "0_0 0_2")}
    assert FIRST.running == ("a-StreamThread-1", "a-StreamThread-2", "b-StreamThread-1", "b-StreamThread-2")
    assert [len(t.tasks) for t in FIRST.threads] == [2, 1, 2, 1]
    assert (FIRST.state, FIRST.tasks, FIRST.revoked) == (State.RUNNING, {0: 4, 1: 2}, ())
    assert Processing.model_validate_json(FIRST.model_dump_json()) == FIRST


def test_the_ends_of_the_inputs_belong_to_the_run_and_outlive_the_death_of_a_thread() -> None:
    ends = {"in": {0: 5, 1: 7}}
    first = Rebalance("run", 1_000, TASKS, [A, B], CONFIGS, input_ends=ends).of(None)
    assert Processing.model_validate_json(first.model_dump_json()).input_ends == ends
    died = thread_died(first, first.running[0], Decision.REPLACE_THREAD)
    assert died.input_ends == ends
    assert rebalanced(first, A, B, run="run 2").input_ends == {}


def test_a_client_that_is_gone_is_replaced_by_its_standbys() -> None:
    a = having(A, "0_0 0_1 0_2 0_3", 5)
    for left in ((a, gone(B)), (a,)):
        after = rebalanced(FIRST, *left)
        assert places(after)["a"][0] == "0_0 0_1 0_2 0_3 1_0 1_1"
    absent = record(rebalanced(FIRST, a, gone(B)), "b")
    assert (absent.state, absent.threads, absent.absent) == (State.CREATED, (), "no such directory")


def test_a_client_that_comes_back_keeps_the_state_that_it_has() -> None:
    away = rebalanced(FIRST, having(A, "0_0 0_1 0_2 0_3"), gone(B))
    back = rebalanced(away, having(A, "0_0 0_1 0_2 0_3"), having(B, "0_1 0_3", 9))
    assert places(back)["b"][0].startswith("0_1 0_3")
    assert record(back, "b").absent == ""


def test_a_client_that_comes_back_has_the_threads_that_the_file_gives_it() -> None:
    added = rebalanced(thread_added(FIRST, "b")[0], A, B)
    assert len(record(added, "b").running) == 3
    assert len(record(rebalanced(rebalanced(added, A, gone(B)), A, B), "b").running) == 2


def test_a_client_that_joins_warms_up_first_and_is_given_its_tasks_when_it_has_caught_up() -> None:
    joined = rebalanced(FIRST, having(A, "0_0 0_1 0_2 0_3"), having(B, "0_0 0_1 0_2 0_3"), C)
    assert [t for t in places(joined)["c"][0].split() if t.startswith("0")] == []
    warm = places(joined)["c"][1]
    assert len(warm.split()) == CONFIGS.max_warmup_replicas
    assert joined.assignment.is_probing_rebalance_needed
    moved = rebalanced(joined, having(A, "0_0 0_1 0_2 0_3"), having(B, "0_0 0_1 0_2 0_3"), having(C, warm))
    assert set(places(moved)["c"][0].split()) & set(warm.split())


def test_what_moves_from_a_thread_that_may_be_at_work_is_revoked_before_anybody_else_has_it() -> None:
    everything = "0_0 0_1 0_2 0_3"
    alone = rebalanced(None, A)
    owners = tuple(thread.name for thread in alone.threads)
    first = rebalanced(alone, having(A, everything), having(B, everything), at_work=owners)
    moving = {task for task in everything.split() if task not in places(first)["a"][0].split()}
    assert moving
    assert moving <= set(first.revoked)
    assert not moving & set(places(first)["b"][0].split()), "it is nobody's until the second rebalance"
    assert record(first, "a").state is State.REBALANCING
    assert {t.state for t in record(first, "a").threads} == {ThreadState.PARTITIONS_REVOKED}
    second = rebalanced(first, having(A, everything), having(B, everything))
    assert moving <= set(places(second)["b"][0].split())
    assert (second.revoked, second.state) == ((), State.RUNNING)


def test_what_a_client_that_left_the_file_may_still_run_is_revoked() -> None:
    owners = tuple(thread.name for thread in record(FIRST, "b").threads)
    first = rebalanced(FIRST, having(A, "0_0 0_1 0_2 0_3"), at_work=owners)
    assert set(first.revoked) == {"0_1", "0_3", "1_1"}
    assert places(rebalanced(first, A)) == {"a": ("0_0 0_1 0_2 0_3 1_0 1_1", "")}


def test_a_rebalance_in_which_nobody_moves_revokes_nothing() -> None:
    everyone = having(A, "0_0 0_1 0_2 0_3"), having(B, "0_0 0_1 0_2 0_3")
    assert rebalanced(FIRST, *everyone, at_work=FIRST.running) == rebalanced(FIRST, *everyone)


def test_threads_of_a_client_change_by_themselves() -> None:
    added, name = thread_added(FIRST, "b")
    assert name == "b-StreamThread-3"
    second = rebalanced(added, A, B)
    assert len(record(second, "b").running) == 3
    assert sum(len(t.tasks) for t in second.threads) == 6
    removed, gone_thread = thread_removed(second, "b")
    assert gone_thread not in rebalanced(removed, A, B).running
    assert len(record(rebalanced(removed, A, having(B, "", threads=1)), "b").running) == 1
    with pytest.raises(InvalidInput, match="2 clients, and no name"):
        thread_added(FIRST, None)
    with pytest.raises(InvalidInput, match="one of a, b"):
        thread_added(FIRST, "c")


def test_a_client_without_threads_has_no_tasks_and_goes_on_running() -> None:
    removed = thread_removed(thread_removed(FIRST, "b")[0], "b")[0]
    after = rebalanced(removed, A, B)
    assert places(after) == {"a": ("0_0 0_1 0_2 0_3 1_0 1_1", ""), "b": ("", "")}
    assert record(after, "b").state is State.RUNNING


def test_a_client_that_was_given_up_takes_part_again_only_when_it_is_started() -> None:
    given_up = clients_removed(FIRST, {"b"})
    assert record(given_up, "b").state is State.PENDING_SHUTDOWN
    after = rebalanced(given_up, A, B)
    assert (record(after, "b").state, places(after)["b"]) == (State.NOT_RUNNING, ("", ""))
    assert places(rebalanced(after, A, B))["b"] == ("", "")
    again = rebalanced(clients_started(after, {"b"}), A, B)
    assert record(again, "b").state is State.RUNNING
    assert places(again)["b"][0]
    assert adjusted(FIRST, "r", Adjustments(remove="b")).processing.clients == given_up.clients
    started = adjusted(after, "r", Adjustments(start="b")).processing
    assert started.clients == clients_started(after, {"b"}).clients
    with pytest.raises(Refused, match="all that are left"):
        clients_removed(after, {"a"})


def test_an_absent_client_that_is_started_joins_without_its_old_state() -> None:
    away = rebalanced(FIRST, A, gone(B))
    assert record(away, "b").state_dir == "/b"
    assert record(clients_started(away, {"b"}), "b").state_dir == "", "it is not looked for where it was"


def test_a_run_without_any_client_is_refused_with_the_reason_of_each() -> None:
    ended = rebalanced(clients_removed(FIRST, {"b"}), A, B)
    with pytest.raises(Refused, match=r"a: no such directory; b: NOT_RUNNING"):
        rebalanced(ended, gone(A), B)


def test_a_dead_thread_is_replaced_by_one_that_has_all_its_tasks() -> None:
    dead = FIRST.threads[0]
    after = thread_died(FIRST, dead.name, Decision.REPLACE_THREAD)
    assert after.thread_for(dead.name) == "a-StreamThread-3"
    assert after.tasks_of("a-StreamThread-3", [0, 1]) == FIRST.tasks_of(dead.name, [0, 1])
    assert record(after, "a").failed_stream_threads == 1
    assert (after.state, places(after)) == (State.RUNNING, places(FIRST))
    assert thread_died(after, dead.name, Decision.REPLACE_THREAD) == after, "it dies once"
    assert Processing.model_validate_json(after.model_dump_json()) == after


def test_names_that_are_used_again_mean_the_thread_of_the_beginning_of_the_run() -> None:
    first, second = FIRST.threads[0].name, FIRST.threads[1].name
    now = FIRST
    for begun in (first, first, second, first, second):
        now = thread_died(now, now.thread_for(begun), Decision.REPLACE_THREAD)
        for each in (first, second):
            assert now.tasks_of(now.thread_for(each), [0, 1]) == FIRST.tasks_of(each, [0, 1])
    assert record(now, "a").failed_stream_threads == 5
    assert all(thread.replaces == "" for thread in rebalanced(now, A, B).threads)


def test_what_a_run_asks_for_is_done_once_however_often_it_is_cleared() -> None:
    asked = Adjustments(add_to="a", processors=8)
    once = rebalanced(adjusted(FIRST, "run-7", asked).processing, A, B)
    assert len(record(once, "a").running) == 3
    later = rebalanced(adjusted(once, "run-8", Adjustments(remove_from="a")).processing, A, B)
    assert adjusted(later, "run-7", asked) == Adjusted(later)
    assert still_asked(later, "run-7", asked) == NOTHING_ASKED, "nor are processors asked for again"
    assert still_asked(later, "run-9", asked) == asked
    assert Processing.model_validate_json(later.model_dump_json()).adjusted_by == ("run-7", "run-8")
    for number in range(REMEMBERED):
        later = adjusted(later, f"another-{number}", Adjustments(start="b")).processing
    assert len(later.adjusted_by) == REMEMBERED
    assert rebalanced(changed_by(later, "a-task", "a-thread"), A, B).changed_threads == {"a-task": "a-thread"}
    assert adjusted(later, "quiet", NOTHING_ASKED) == Adjusted(later)


def test_a_thread_that_was_asked_to_end_has_its_tasks_until_the_run_has_ended() -> None:
    """If it dies, or another thread does, it does not count as dead, and no thread replaces it."""
    asked, leaving = thread_removed(FIRST, "a")
    assert leaving is not None
    (other,) = {thread.name for thread in record(FIRST, "a").threads} - {leaving}
    after = thread_died(asked, other, Decision.REPLACE_THREAD)
    assert after.tasks_of(leaving, [0, 1]) == FIRST.tasks_of(leaving, [0, 1])
    assert after.thread_for(leaving) == leaving
    assert after.tasks_of(after.thread_for(other), [0, 1]) == FIRST.tasks_of(other, [0, 1])
    assert record(after, "a").failed_stream_threads == 1
    assert thread_died(after, leaving, Decision.REPLACE_THREAD) == after
    following = rebalanced(after, A, B)
    assert leaving not in {thread.name for thread in record(following, "a").threads}
    assert len(record(following, "a").running) == 1


def test_the_handler_can_shut_down_the_client() -> None:
    after = thread_died(FIRST, FIRST.threads[0].name, Decision.SHUTDOWN_CLIENT)
    assert record(after, "a").state is State.PENDING_ERROR
    assert after.thread_for(FIRST.threads[0].name) not in after.running
    following = rebalanced(after, A, B)
    assert (record(following, "a").state, following.state) == (State.ERROR, State.RUNNING)
    assert places(following)["b"][0] == "0_0 0_1 0_2 0_3 1_0 1_1"


def test_the_handler_can_shut_down_the_application() -> None:
    after = thread_died(FIRST, FIRST.threads[0].name, Decision.SHUTDOWN_APPLICATION)
    assert {c.state for c in after.clients} == {State.PENDING_ERROR}
    with pytest.raises(Refused, match="a: ERROR; b: ERROR"):
        rebalanced(after, A, B)
    assert rebalanced(clients_started(after, {"a", "b"}), A, B).running == FIRST.running


def test_an_absent_client_does_not_go_on_alone_after_the_application_was_shut_down() -> None:
    away = rebalanced(FIRST, having(A, "0_0 0_1 0_2 0_3"), gone(B))
    after = thread_died(away, record(away, "a").threads[0].name, Decision.SHUTDOWN_APPLICATION)
    assert record(after, "b").state is State.ERROR
    with pytest.raises(Refused, match="a: ERROR; b: ERROR"):
        rebalanced(after, A, having(B, "0_1 0_3"))
    started = rebalanced(clients_started(after, {"b"}), A, B)
    assert places(started) == {"a": ("", ""), "b": ("0_0 0_1 0_2 0_3 1_0 1_1", "")}


def test_a_client_that_was_started_again_within_the_run_is_shut_down_as_well() -> None:
    ended = rebalanced(clients_removed(FIRST, {"b"}), A, B)
    starts = clients_started(ended, {"b"})
    after = thread_died(starts, record(starts, "a").threads[0].name, Decision.SHUTDOWN_APPLICATION)
    with pytest.raises(Refused, match="a: ERROR; b: ERROR"):
        rebalanced(after, A, B)


def told(before: Processing, asked: Adjustments, *members: Member) -> list[str]:
    """What a run says of the threads that it was asked for."""
    done = adjusted(before, "run", asked, [member.client_id for member in members])
    return list(done.told(rebalanced(done.processing, *members)))


def test_a_run_names_the_threads_that_were_added_and_removed() -> None:
    assert told(FIRST, Adjustments(add_to="a", remove_from="b"), A, B) == [
        "added a-StreamThread-3",
        "removed b-StreamThread-1",
    ]
    assert told(FIRST, NOTHING_ASKED, A, B) == []


def test_a_run_says_that_a_client_in_error_gets_no_thread() -> None:
    died = thread_died(FIRST, FIRST.threads[0].name, Decision.SHUTDOWN_CLIENT)
    after = rebalanced(died, A, B)
    assert record(after, "a").state is State.ERROR
    assert told(after, Adjustments(add_to="a", remove_from="a"), A, B) == [
        "no thread added: a is ERROR (see start-client)",
        "no thread removed: a is ERROR (see start-client)",
    ]


def test_a_client_that_begins_with_this_run_has_the_threads_of_the_file() -> None:
    begins = "starts with this run, with as many threads as the file gives it"
    assert told(Processing(), Adjustments(add_to="b"), A, B) == [f"no thread added: b {begins}"]
    assert told(FIRST, Adjustments(add_to="c", remove_from="c"), A, B, C) == [
        f"no thread added: c {begins}",
        f"no thread removed: c {begins}",
    ]
    one = Member("b", 1, "/b")
    assert told(FIRST, Adjustments(add_to="b"), A, one) == [f"no thread added: b {begins}"]
    with pytest.raises(InvalidInput, match="no client 'd'"):
        told(Processing(), Adjustments(add_to="d"), A, B)


def test_a_thread_that_an_absent_client_would_have_got_is_not_told_as_added() -> None:
    assert told(FIRST, Adjustments(add_to="b"), A, gone(B)) == ["no thread added: b is absent (no such directory)"]
    none_left = thread_removed(thread_removed(FIRST, "b")[0], "b")[0]
    assert told(none_left, Adjustments(remove_from="b"), A, B) == ["no thread removed: b has no thread"]


def test_a_client_that_would_begin_with_this_run_can_be_given_up() -> None:
    done = adjusted(FIRST, "run", Adjustments(remove="c"), ["a", "b", "c"]).processing
    assert record(rebalanced(done, A, B, C), "c").state is State.NOT_RUNNING
    with pytest.raises(Refused, match="all that are left"):
        adjusted(Processing(), "run", Adjustments(remove="a"), ["a"])


def test_standbys_that_are_missing_are_kept_with_the_assignment() -> None:
    assert "missing" not in FIRST.model_dump(), "the record of an earlier version has no such field"
    alone = rebalanced(FIRST, having(A, "0_0 0_1 0_2 0_3"), gone(B))
    assert alone.missing == {"0_0": 1, "0_1": 1, "0_2": 1, "0_3": 1}
    kept = Processing.model_validate_json(alone.model_dump_json())
    assert kept == alone
    assert list(kept.assignment.missing_rows()) == [(task, 1) for task in ("0_0", "0_1", "0_2", "0_3")]


def test_a_rule_for_racks_may_name_the_rack_of_an_absent_client() -> None:
    members = [Member(name, 1, f"/{name}", {"rack": rack}) for name, rack in (("a", "east"), ("b", "west"))]
    lost = replace(members[1], absent="no such directory")
    after = Rebalance("run", 0, TASKS, [members[0], lost], CONFIGS, WestOnly()).of(None)
    assert set(after.missing.values()) == {1}
    with pytest.raises(InvalidInput, match="rack 'west', which no client has"):
        Rebalance("run", 0, TASKS, members[:1], CONFIGS, WestOnly()).of(None)


def test_an_absent_client_can_be_given_up_and_does_not_come_back_by_itself() -> None:
    a = having(A, "0_0 0_1 0_2 0_3")
    away = rebalanced(FIRST, a, gone(B))
    removed = clients_removed(away, {"b"})
    assert record(removed, "b").state is State.NOT_RUNNING
    for member in (gone(B), having(B, "0_1 0_3")):
        after = rebalanced(removed, a, member)
        assert (record(after, "b").state, record(after, "b").absent) == (State.NOT_RUNNING, "")
        assert places(after)["b"] == ("", "")
    assert record(rebalanced(clients_started(after, {"b"}), a, having(B, "0_1")), "b").running
    with pytest.raises(Refused, match="found a, b, which are all that are left"):
        clients_removed(away, {"a", "b"})


def test_the_last_client_that_can_come_back_is_not_given_up() -> None:
    """Nobody would process any more, not even when the disk of that client is mounted again."""
    away = rebalanced(FIRST, having(A, "0_0 0_1 0_2 0_3"), gone(B))
    ended = away.with_clients(record(away, "a").with_client(record(away, "a").client.close()))
    with pytest.raises(Refused, match="found b, which are all that are left"):
        clients_removed(ended, {"b"})
