"""Rules that hold for every assignment, whatever the clients and their state."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_rescale.core.assignment.assignment import Assignment, ClientTasks
from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.high_availability import assign
from kafka_rescale.core.assignment.lags import LATEST_OFFSET, UNKNOWN_OFFSET_SUM, Lags, task_lag
from kafka_rescale.core.assignment.picture import svg
from kafka_rescale.core.assignment.tasks import Client, Role, TaskId, Tasks
from kafka_rescale.core.assignment.validation import AssignmentError, flaws, require_valid
from kafka_rescale.core.errors import InvalidInput, UnsafeState

from tests.support.processing.assignments import active, client, copies, ids, reordered, standby, tasks

END = 1000
STATEFUL = [TaskId(s, p) for s in range(2) for p in range(5)]
STATELESS = frozenset(TaskId(2, p) for p in range(3))
ALL = Tasks(dict.fromkeys(STATEFUL, END), STATELESS)

lags = st.one_of(st.integers(0, END), st.just(LATEST_OFFSET), st.just(UNKNOWN_OFFSET_SUM))
states = st.dictionaries(st.sampled_from(STATEFUL), lags)
client_lists = st.lists(
    st.tuples(st.integers(1, 3), states, st.sampled_from("ab"), st.sampled_from("xyz")), min_size=1, max_size=6
).map(
    lambda found: [
        Client(f"c{n}", threads, state, {"zone": zone, "cluster": cluster})
        for n, (threads, state, zone, cluster) in enumerate(found)
    ]
)
configurations = st.builds(
    AssignmentConfigs,
    acceptable_recovery_lag=st.sampled_from([0, 100, END]),
    max_warmup_replicas=st.integers(1, 3),
    num_standby_replicas=st.integers(0, 3),
    rack_aware_assignment_tags=st.sampled_from([(), ("zone",), ("zone", "cluster")]),
)


@settings(max_examples=50, deadline=None)
@given(client_lists, configurations)
def test_the_invariants_of_a_placement(clients: list[Client], configs: AssignmentConfigs) -> None:
    assignment = assign(ALL, clients, configs)
    assert flaws(assignment, ALL, [c.id for c in clients]) == ()
    wanted = min(len(clients), 1 + configs.num_standby_replicas)
    beyond = [len(copies(assignment, task)) - wanted for task in STATEFUL]
    assert min(beyond) >= 0
    assert sum(beyond) <= configs.max_warmup_replicas
    assert sum(len(assignment.warm_ups(c.id)) for c in clients) <= configs.max_warmup_replicas


@settings(max_examples=50, deadline=None)
@given(client_lists, configurations)
def test_no_active_task_restores_while_a_client_with_its_state_is_there(
    clients: list[Client], configs: AssignmentConfigs
) -> None:
    assignment = assign(ALL, clients, configs)
    known = Lags(ALL.stateful, clients, configs.acceptable_recovery_lag)
    for task in STATEFUL:
        (holder,) = assignment.holders(task, Role.ACTIVE)
        assert not known.others_are_more_caught_up(task, holder)


@settings(max_examples=50, deadline=None)
@given(client_lists, configurations, st.randoms(use_true_random=False))
def test_the_order_of_the_input_decides_nothing(
    clients: list[Client], configs: AssignmentConfigs, chance: random.Random
) -> None:
    shuffled = [
        replace(
            c, lags=dict(chance.sample(list(c.lags.items()), len(c.lags))), tags=dict(reversed(c.tags.items()))
        )
        for c in chance.sample(clients, len(clients))
    ]
    tags = tuple(reversed(configs.rack_aware_assignment_tags))
    configs_too = replace(configs, rack_aware_assignment_tags=tags)
    assert assign(reordered(ALL), shuffled, configs_too) == assign(ALL, clients, configs)


def test_the_lag_of_a_task_is_the_sum_over_its_changelogs() -> None:
    """KIP-441: the sum of end offsets minus the sum of the offsets of the state."""
    assert task_lag(offset_sum=700, end_offset_sum=1000) == 300
    assert task_lag(offset_sum=0, end_offset_sum=1000) == 1000
    assert task_lag(offset_sum=LATEST_OFFSET, end_offset_sum=1000) == LATEST_OFFSET
    assert task_lag(offset_sum=UNKNOWN_OFFSET_SUM, end_offset_sum=1000) == UNKNOWN_OFFSET_SUM


def test_state_beyond_the_end_of_its_changelog_has_to_be_restored_as_a_whole() -> None:
    assert task_lag(offset_sum=1001, end_offset_sum=1000) == 1000


@pytest.mark.parametrize(
    ("lag", "is_caught_up"),
    [(0, True), (10_000, True), (10_001, False), (LATEST_OFFSET, True), (UNKNOWN_OFFSET_SUM, False)],
)
def test_a_client_is_caught_up_within_the_acceptable_lag(lag: int, is_caught_up: bool) -> None:
    task = TaskId(0, 0)
    known = Lags({task: 50_000}, [Client("c", lags={task: lag})], AssignmentConfigs().acceptable_recovery_lag)
    assert known.is_caught_up(task, "c") is is_caught_up
    assert known.caught_up(task) == (["c"] if is_caught_up else [])
    assert known.caught_up_count(task) == is_caught_up


def test_a_short_changelog_makes_everybody_caught_up() -> None:
    """If there is nothing to read, no client has to wait."""
    task = TaskId(0, 0)
    known = Lags({task: 5}, [Client("c1"), Client("c2", lags={task: 0})], acceptable=10)
    assert known.caught_up(task) == ["c1", "c2"]
    assert known.caught_up_count(task) == 2
    assert not known.others_are_more_caught_up(task, "c1")


def test_a_task_is_named_as_kafka_streams_names_it() -> None:
    assert [str(task) for task in sorted(ids("10_2 2_10 2_9"))] == ["2_9", "2_10", "10_2"]
    for wrong in ("", "0", "0_1_2", "a_1", "0_-1"):
        with pytest.raises(InvalidInput):
            TaskId.parse(wrong)


def test_a_table_shows_who_has_what_and_what_is_still_to_come() -> None:
    clients = [client("c1", 0, "0_0 0_1 0_2 0_3"), client("c2")]
    assignment = assign(tasks("0_0 0_1 0_2 0_3", "1_0"), clients, AssignmentConfigs(100, max_warmup_replicas=1))
    assert list(assignment.rows()) == [
        ("c1", "0_0, 0_1, 0_2, 0_3", "-"),
        ("c2", "1_0", "0_1 (warm-up)"),
    ]
    assert list(assignment.movement_rows()) == [
        ("0_1", "active", "c1", "c2", "its warm-up to catch up"),
        ("0_3", "active", "c1", "c2", "a free warm-up"),
    ]


@pytest.mark.parametrize(
    ("replicas", "names", "missing", "told"),
    [
        (1, "c1 c2", {}, []),
        (3, "c1 c2", {"0_0": 2, "0_1": 2}, ["2 of 3 standbys of 0_0, 0_1 have no client."]),
        (1, "c1", {"0_0": 1, "0_1": 1}, ["1 of 1 standbys of 0_0, 0_1 has no client."]),
    ],
)
def test_standbys_for_which_there_is_no_client_are_told(
    replicas: int, names: str, missing: dict[str, int], told: list[str]
) -> None:
    configs = AssignmentConfigs(num_standby_replicas=replicas)
    assignment = assign(tasks("0_0 0_1", "1_0"), [client(name) for name in names.split()], configs)
    assert {str(task): lacks for task, lacks in assignment.missing.items()} == missing
    assert list(assignment.missing_rows()) == list(missing.items())
    said = list(assignment.told_missing(replicas))
    assert [text.split(":")[0] + "." for text in said] == told
    assert all("num.standby.replicas" in text for text in said)
    assert ("no client for a standby:" in svg(assignment)) is bool(missing)


def test_tasks_that_lack_as_many_standbys_are_told_together() -> None:
    assignment = Assignment({}, missing={TaskId(0, 0): 1, TaskId(0, 1): 2, TaskId(0, 2): 1})
    one, two = assignment.told_missing(2)
    assert one.startswith("1 of 2 standbys of 0_0, 0_2 has no client: ")
    assert two.startswith("2 of 2 standbys of 0_1 have no client: ")


GOOD = Assignment({"c1": ClientTasks(ids("0_0 1_0"), ids("0_1")), "c2": ClientTasks(ids("0_1"), ids("0_0"))})
SMALL = tasks("0_0 0_1", "1_0")


def changed(name: str, active_tasks: str, standbys: str = "") -> Assignment:
    """The good assignment, changed for one client."""
    return Assignment({**GOOD.clients, name: ClientTasks(ids(active_tasks), ids(standbys))})


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        (
            changed("c1", "0_0 0_1 1_0"),
            "ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES: task 0_1 is active on c1, c2",
        ),
        (changed("c2", "0_1", "1_0"), "INVALID_STANDBY_TASK: client c2 has a standby of stateless task 1_0"),
        (
            Assignment({"c1": ClientTasks(ids("0_0 0_1 1_0"))}),
            "MISSING_PROCESS_ID: client c2 has no assignment",
        ),
        (changed("c3", ""), "UNKNOWN_PROCESS_ID: client c3 does not belong to the application"),
        (changed("c2", "0_1 7_7"), "UNKNOWN_TASK_ID: task 7_7 of client c2 does not belong to the application"),
        (changed("c2", ""), "ACTIVE_TASK_MISSING: task 0_1 is active on no client"),
        (
            changed("c2", "0_1", "0_1"),
            "ACTIVE_AND_STANDBY_ON_ONE_CLIENT: client c2 has task 0_1 as active and as standby",
        ),
    ],
)
def test_a_broken_rule_of_kip_924_is_named(assignment: Assignment, expected: str) -> None:
    """``TaskAssignmentUtilsTest#testValidateTaskAssignment``, and cases that Kafka Streams' types rule out."""
    found = flaws(assignment, SMALL, ["c1", "c2"])
    assert [str(flaw) for flaw in found] == [expected]
    with pytest.raises(UnsafeState, match=expected):
        require_valid(assignment, SMALL, ["c1", "c2"])


def test_an_assignment_without_a_flaw_is_let_through() -> None:
    require_valid(GOOD, SMALL, ["c1", "c2"])
    assert (active(GOOD, "c2"), standby(GOOD, "c2")) == ("0_1", "0_0")


def test_every_rule_has_been_seen_broken() -> None:
    broken = Assignment(
        {
            "c1": ClientTasks(ids("0_0 9_9"), ids("1_0 0_0")),
            "c3": ClientTasks(ids("0_0")),
        }
    )
    assert {flaw.error for flaw in flaws(broken, SMALL, ["c1", "c2"])} == set(AssignmentError)
