"""Standbys on other racks: what is wrong with the default of KIP-708's draft, and how a lost rack is replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.draft import Draft
from kafka_rescale.core.assignment.high_availability import assign
from kafka_rescale.core.assignment.rack_standbys import (
    DefaultRackStandbyTaskAssignor,
    RackStandbys,
    RackStandbyTaskAssignor,
    rack_standby_task_assignor,
)
from kafka_rescale.core.assignment.tasks import Client, Role, TaskId, Tasks
from kafka_rescale.core.errors import InvalidInput

from tests.support.processing.assignments import assert_valid, copies, ids

WEST, EAST = "west", "east"
RACKS = {"c1": WEST, "c2": EAST}
TWO = ids("0_0 0_1")
SOURCE = {TWO[0]: WEST, TWO[1]: EAST}


class AsDrafted:
    """The default of KIP-708's first draft, line by line. Its mistake: an empty set replaces a rack's set."""

    def assign_standby_task_to_racks(
        self, source_tasks: Mapping[TaskId, str], client_rack_ids: AbstractSet[str]
    ) -> Mapping[str, AbstractSet[TaskId]]:
        """Go through the tasks in their order."""
        distribution: dict[str, set[TaskId]] = {}
        for task, task_rack in source_tasks.items():
            for rack in client_rack_ids:
                if task_rack != rack:
                    distribution.setdefault(rack, set()).add(task)
                else:
                    distribution[rack] = set()
        return distribution


def standbys(assignor: RackStandbyTaskAssignor, racks: Mapping[str, str] = RACKS) -> dict[str, set[TaskId]]:
    """Standbys per client if c1 has 0_0 and c2 has 0_1."""
    draft = Draft([Client(name) for name in racks])
    draft.assign("c1", TWO[0], Role.ACTIVE)
    draft.assign("c2", TWO[1], Role.ACTIVE)
    RackStandbys(racks, assignor).assign(draft, TWO, AssignmentConfigs(num_standby_replicas=1))
    return {name: draft.tasks(name, Role.STANDBY) for name in draft}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("missing", "has no attribute 'missing'"),
        ("INSTANCE", "TypeError"),
        ("WithArguments", "TypeError"),
        ("WithoutMethod", "without that method"),
    ],
)
def test_a_class_that_can_not_be_used_is_refused(name: str, found: str) -> None:
    with pytest.raises(InvalidInput, match=rf"rack.standby.task.assignor.*{name}.*{found}"):
        rack_standby_task_assignor(f"tests.support.processing.rack_rule:{name}")


@pytest.mark.parametrize("answer", [None, {EAST: 1}, ZeroDivisionError("by zero")])
def test_a_class_that_answers_something_else_is_told_by_its_name(answer: Any) -> None:
    class Own:
        def assign_standby_task_to_racks(self, source_tasks: Any, client_rack_ids: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    with pytest.raises(InvalidInput, match=r"rack\.standby\.task\.assignor 'Own'.*returns sets of tasks by rack"):
        standbys(Own())


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({EAST: {"0_0"}}, r"for rack 'east' the tasks '0_0', which are no keys of source_tasks"),
        ({EAST: {TWO[0], TaskId(7, 7)}}, r"for rack 'east' the tasks 7_7, which are"),
        ({EAST: "0_0"}, r"for rack 'east' the tasks '0', '_', which are"),
        ({"north": {TWO[0]}}, r"the rack 'north', which no client has"),
        ({EAST: {TWO[0]}, None: set()}, r"the rack None, which no client has"),
    ],
)
def test_a_class_that_answers_with_unknown_tasks_or_racks_is_refused(answer: Any, found: str) -> None:
    class Own:
        def assign_standby_task_to_racks(self, source_tasks: Any, client_rack_ids: Any) -> Any:
            return answer

    with pytest.raises(
        InvalidInput, match=rf"rack\.standby\.task\.assignor 'Own': found {found}.*; expected .*Correct"
    ):
        standbys(Own())


def test_a_class_may_name_a_rack_whose_clients_are_all_absent() -> None:
    draft = Draft([Client("c1")])
    draft.assign("c1", TWO[0], Role.ACTIVE)
    placed = RackStandbys({"c1": WEST}, Everywhere(), declared=[WEST, EAST])
    assert placed.assign(draft, TWO, AssignmentConfigs(num_standby_replicas=1)) == {TWO[0]: 1}


class Everywhere:
    """Names two racks, whatever racks there are."""

    def assign_standby_task_to_racks(
        self, source_tasks: Mapping[TaskId, str], client_rack_ids: AbstractSet[str]
    ) -> Mapping[str, AbstractSet[TaskId]]:
        """Let every rack have standbys of every task that is active elsewhere."""
        return {rack: {t for t, active in source_tasks.items() if active != rack} for rack in (WEST, EAST)}


def test_the_draft_loses_what_a_rack_had_when_it_meets_a_task_of_that_rack() -> None:
    racks = frozenset(RACKS.values())
    assert AsDrafted().assign_standby_task_to_racks(SOURCE, racks) == {WEST: {TWO[1]}, EAST: set()}
    backwards = dict(reversed(SOURCE.items()))
    assert AsDrafted().assign_standby_task_to_racks(backwards, racks) == {WEST: set(), EAST: {TWO[0]}}
    for order in (SOURCE, backwards):
        assert DefaultRackStandbyTaskAssignor().assign_standby_task_to_racks(order, racks) == {
            WEST: {TWO[1]},
            EAST: {TWO[0]},
        }


def test_by_the_draft_a_task_would_have_no_standby_at_all() -> None:
    assert standbys(AsDrafted()) == {"c1": {TWO[1]}, "c2": set()}
    assert standbys(DefaultRackStandbyTaskAssignor()) == {"c1": {TWO[1]}, "c2": {TWO[0]}}


def test_a_rule_of_the_users_own_decides_which_racks_may_have_standbys() -> None:
    class OnlyOneRack:
        """Puts all standbys on one rack."""

        def assign_standby_task_to_racks(
            self, source_tasks: Mapping[TaskId, str], client_rack_ids: AbstractSet[str]
        ) -> Mapping[str, AbstractSet[TaskId]]:
            """Put all tasks on the rack in the north."""
            assert client_rack_ids == {WEST, EAST, "north"}
            return {"north": set(source_tasks)}

    found = standbys(OnlyOneRack(), RACKS | {"c3": "north"})
    assert found == {"c1": set(), "c2": set(), "c3": set(TWO)}


def test_a_standby_is_rather_missing_than_on_the_rack_of_its_active_task() -> None:
    draft = Draft([Client("c1"), Client("c2")])
    draft.assign("c1", TWO[0], Role.ACTIVE)
    one_rack = dict.fromkeys(draft, WEST)
    missing = RackStandbys(one_rack).assign(draft, TWO[:1], AssignmentConfigs(num_standby_replicas=1))
    assert missing == {TWO[0]: 1}
    assert not draft.tasks("c2", Role.STANDBY)


def test_a_standby_is_balanced_only_within_its_rack() -> None:
    assignor = RackStandbys({"c1": WEST, "c2": EAST, "c3": WEST})
    assert assignor.is_allowed_movement(Client("c1"), Client("c3"))
    assert not assignor.is_allowed_movement(Client("c1"), Client("c2"))


ACCEPTABLE = 100
END = 10_000


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=2, max_size=9).filter(lambda racks: len(set(racks)) > 1),
    st.integers(1, 12),
    st.integers(0, 5),
    st.data(),
)
def test_a_lost_rack_leaves_every_task_with_a_client_that_has_at_most_the_acceptable_lag_to_restore(
    racks: Sequence[str], stateful: int, stateless: int, data: st.DataObject
) -> None:
    """All clients of a rack are lost at once. Standbys on other racks become active."""
    tasks = Tasks({TaskId(0, p): END for p in range(stateful)}, frozenset(TaskId(1, p) for p in range(stateless)))
    configs = AssignmentConfigs(ACCEPTABLE, num_standby_replicas=1, rack_aware_assignment_tags=("rack",))
    clients = [Client(f"c{n}", tags={"rack": rack}) for n, rack in enumerate(racks)]
    by_id = {client.id: client for client in clients}
    before = assign(tasks, clients, configs)
    for task in tasks.stateful:
        assert len({by_id[name].tags["rack"] for name in copies(before, task)}) == 2

    lost = data.draw(st.sampled_from(sorted(set(racks))))
    behind = data.draw(st.integers(0, ACCEPTABLE))
    left = [
        Client(c.id, c.threads, _lags(before.clients[c.id].active, before.clients[c.id].standby, behind), c.tags)
        for c in clients
        if c.tags["rack"] != lost
    ]
    after = assign(tasks, left, configs)
    assert_valid(after, tasks, standbys=1, warm_ups=configs.max_warmup_replicas)
    by_id = {client.id: client for client in left}
    for name, has in after.clients.items():
        for task in set(has.active) & tasks.stateful.keys():
            assert by_id[name].lags.get(task, END) <= ACCEPTABLE


def _lags(active: Sequence[TaskId], standby: Sequence[TaskId], behind: int) -> dict[TaskId, int]:
    return dict.fromkeys(standby, behind) | dict.fromkeys(active, 0)


def test_without_rack_awareness_a_lost_rack_can_take_both_copies_of_a_task() -> None:
    clients = [Client(f"c{n}", tags={"rack": rack}) for n, rack in enumerate("aabb")]
    tasks = Tasks({TaskId(0, p): END for p in range(4)})
    racks = {client.id: client.tags["rack"] for client in clients}

    def lonely(configs: AssignmentConfigs) -> bool:
        assignment = assign(tasks, clients, configs)
        return any(len({racks[name] for name in copies(assignment, task)}) == 1 for task in tasks.stateful)

    assert lonely(AssignmentConfigs(num_standby_replicas=1))
    assert not lonely(AssignmentConfigs(num_standby_replicas=1, rack_aware_assignment_tags=("rack",)))
