"""The cases of Kafka Streams' ``ClientTagAwareStandbyTaskAssignorTest``, each under its name, and the limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from kafka_rescale.core.assignment.client_tags import ClientTagAwareStandbyTaskAssignor, standby_task_assignor
from kafka_rescale.core.assignment.configs import AssignmentConfigs, client_tags
from kafka_rescale.core.assignment.draft import Draft
from kafka_rescale.core.assignment.standby_assignors import DefaultStandbyTaskAssignor, StandbyTaskAssignor
from kafka_rescale.core.assignment.tasks import Client, Role, TaskId
from kafka_rescale.core.errors import InvalidInput

from tests.support.processing.assignments import ids

TAGS = ("zone", "cluster")
SAME_ZONE = {"1": "0_0 1_0", "4": "0_1 1_1", "7": "0_2 1_2"}
SAME_CLUSTER = {"1": "0_0 1_0", "2": "0_1 1_1", "3": "0_2 1_2"}


def tagged(name: str, zone: int | str, cluster: int | str, threads: int = 2) -> Client:
    """A client in a zone and a cluster."""
    return Client(name, threads, tags={"zone": f"zone{zone}", "cluster": f"cluster{cluster}"})


def three_by_three() -> list[Client]:
    """Clients 1 to 9: zones 1, 2, 3 of cluster 1, then of cluster 2 and 3."""
    return [tagged(str(3 * (cluster - 1) + zone), zone, cluster) for cluster in (1, 2, 3) for zone in (1, 2, 3)]


def draft_of(clients: Iterable[Client], active: Mapping[str, str]) -> Draft:
    """A draft with active tasks only."""
    draft = Draft(clients)
    for name, tasks in active.items():
        for task in ids(tasks):
            draft.assign(name, task, Role.ACTIVE)
    return draft


def placed(
    draft: Draft,
    replicas: int,
    tags: tuple[str, ...] = TAGS,
    *,
    stateful: str | None = None,
    assignor: StandbyTaskAssignor | None = None,
) -> Mapping[TaskId, int]:
    """Place standbys of the stateful tasks, by default of all tasks, and return how many are missing."""
    configs = AssignmentConfigs(0, 1, replicas, 60_000, tags)
    tasks = {task for name in draft for task in draft.tasks(name, Role.ACTIVE)}
    wanted = tasks if stateful is None else set(ids(stateful))
    return (assignor or standby_task_assignor(configs)).assign(draft, wanted, configs)


def standbys(draft: Draft, task: str) -> str:
    """Names of the clients that have a standby of a task, without spaces."""
    return "".join(name for name in draft if TaskId.parse(task) in draft.tasks(name, Role.STANDBY))


def counts(draft: Draft) -> dict[str, int]:
    """Standbys per client."""
    return {name: len(draft.tasks(name, Role.STANDBY)) for name in draft}


def assert_two_each(draft: Draft, without: str) -> None:
    """Assert that every client has two standbys, except those that have active tasks."""
    assert counts(draft) == {name: 0 if name in without else 2 for name in draft}
    assert all(draft.count(name) >= draft.clients[name].threads for name in draft)


def test_should_not_assign_stateless_tasks_to_any_clients() -> None:
    draft = draft_of(three_by_three(), SAME_ZONE)
    placed(draft, 2, stateful="1_0 1_1 1_2")
    assert [standbys(draft, task) for task in ("0_0", "0_1", "0_2")] == ["", "", ""]
    assert sum(counts(draft).values()) == 6


def one_zone() -> Draft:
    """Three clients of one zone. Each has its own cluster and one task."""
    clients = [tagged("1", 1, 1), tagged("2", 1, 2), tagged("3", 1, 3)]
    return draft_of(clients, {"1": "0_0", "2": "0_1", "3": "0_2"})


def test_should_remove_client_to_remaining_standbys_and_not_populate_pending_standby_tasks_to_client_id_when_all_standby_tasks_were_assigned() -> (  # noqa: E501
    None
):
    assert placed(one_zone(), 2) == {}


def test_should_update_client_to_remaining_standbys_and_pending_standby_tasks_to_client_id_when_not_all_standby_tasks_were_assigned() -> (  # noqa: E501
    None
):
    assert placed(one_zone(), 3) == dict.fromkeys(ids("0_0 0_1 0_2"), 1)


def test_should_permit_task_movement_when_client_tags_match() -> None:
    assert ClientTagAwareStandbyTaskAssignor().is_allowed_movement(tagged("1", 1, 1), tagged("2", 1, 1))


def test_should_decline_task_movement_when_client_tags_do_not_match() -> None:
    assert not ClientTagAwareStandbyTaskAssignor().is_allowed_movement(tagged("1", 1, 1), tagged("2", 2, 1))


def may_move_to(zone: int) -> bool:
    """Whether a standby may move from zone 1 to another zone of its cluster. The task is active in zone 3."""
    draft = draft_of([tagged("1", 1, 1), tagged("2", zone, 1), tagged("3", 3, 2)], {"3": "0_0"})
    draft.assign("1", TaskId(0, 0), Role.STANDBY)
    return ClientTagAwareStandbyTaskAssignor().is_allowed_task_movement(draft, TaskId(0, 0), "1", "2")


def test_should_permit_single_task_move_when_client_tag_match() -> None:
    assert may_move_to(zone=1)


def test_should_permit_single_task_move_when_different_client_tag_count_not_change() -> None:
    assert may_move_to(zone=2)


def test_should_decline_single_task_move_when_reduce_client_tag_count() -> None:
    assert not may_move_to(zone=3)


def test_should_distribute_standby_tasks_when_active_tasks_are_located_on_same_zone() -> None:
    draft = draft_of(three_by_three(), SAME_ZONE)
    assert placed(draft, 2) == {}
    assert_two_each(draft, without="147")
    for subtopology in "01":
        assert standbys(draft, f"{subtopology}_0") in {"59", "68"}
        assert standbys(draft, f"{subtopology}_1") in {"29", "38"}
        assert standbys(draft, f"{subtopology}_2") in {"35", "26"}


def test_should_distribute_standby_tasks_when_active_tasks_are_located_on_same_cluster() -> None:
    draft = draft_of(three_by_three(), SAME_CLUSTER)
    assert placed(draft, 2) == {}
    assert_two_each(draft, without="123")
    for subtopology in "01":
        assert standbys(draft, f"{subtopology}_0") in {"59", "68"}
        assert standbys(draft, f"{subtopology}_1") in {"49", "67"}
        assert standbys(draft, f"{subtopology}_2") in {"57", "48"}


def test_should_distribute_standby_tasks_using_function_and_supplier_tags() -> None:
    racks = {str(n): f"rack{(n - 1) % 3 + 1}" for n in range(1, 10)}
    untagged = draft_of([Client(name, 2) for name in racks], SAME_CLUSTER)
    assignor = standby_task_assignor(AssignmentConfigs(), racks)
    assert isinstance(assignor, ClientTagAwareStandbyTaskAssignor)
    placed(untagged, 2, (), assignor=assignor)
    zones = draft_of([Client(name, 2, tags={"zone": rack}) for name, rack in racks.items()], SAME_CLUSTER)
    placed(zones, 2, ("zone",))
    for draft in (untagged, zones):
        assert_two_each(draft, without="123")
        for task in ids("0_0 0_1 0_2 1_0 1_1 1_2"):
            assert all((int(name) - 1) % 3 != task.partition for name in standbys(draft, str(task)))


def test_should_do_the_partial_rack_awareness() -> None:
    clients = [tagged(str(3 * (cluster - 1) + zone), zone, cluster, 1) for cluster in (1, 2) for zone in (1, 2, 3)]
    draft = draft_of(clients, {"1": "0_0", "6": "1_0"})
    assert placed(draft, 2, ("cluster", "zone")) == {}
    assert counts(draft)["2"] == counts(draft)["5"] == 1
    assert set(counts(draft).values()) <= {0, 1}
    assert sum(counts(draft).values()) == 4
    assert standbys(draft, "0_0") in {"35", "56"}
    assert standbys(draft, "1_0") in {"24", "12"}


def test_should_distribute_clients_on_different_zone_tags_even_when_clients_reached_capacity() -> None:
    clients = [tagged(str(n), (n - 1) % 3 + 1, 1, 1) for n in range(1, 7)]
    active = {"1": "0_0", "2": "0_1", "3": "0_2", "4": "1_0", "5": "1_1", "6": "1_2"}
    draft = draft_of(clients, active)
    assert placed(draft, 1) == {}
    assert set(counts(draft).values()) == {1}
    for task in ids(" ".join(active.values())):
        assert (int(standbys(draft, str(task))) - 1) % 3 != task.partition


def test_should_ignore_tags_that_are_not_present_in_rack_awareness() -> None:
    draft = draft_of([tagged("1", 1, 1, 1), tagged("2", 2, 1), tagged("3", 1, 2, 1)], {"1": "0_0"})
    placed(draft, 1, ("cluster",))
    assert counts(draft) == {"1": 0, "2": 0, "3": 1}


def test_should_handle_overlapping_tag_values_between_different_tag_keys() -> None:
    clients = [
        Client("1", 2, tags={"zone": "zone1", "cluster": "cluster1"}),
        Client("2", 2, tags={"zone": "cluster1", "cluster": "cluster3"}),
    ]
    draft = draft_of(clients, {"1": "0_0"})
    placed(draft, 1)
    assert standbys(draft, "0_0") == "2"


def test_should_distribute_standby_tasks_on_least_loaded_clients_when_clients_are_not_on_different_tag_dimensions() -> (  # noqa: E501
    None
):
    clients = [tagged(str(n), 1, 1, 3) for n in range(1, 5)]
    draft = draft_of(clients, {"1": "0_0", "2": "0_1", "3": "0_2", "4": "1_0"})
    assert placed(draft, 1, ("cluster", "zone")) == {}
    assert counts(draft) == {"1": 1, "2": 1, "3": 1, "4": 1}


def test_should_not_assign_standby_tasks_if_there_are_no_enough_clients() -> None:
    draft = draft_of([tagged("1", 1, 1, 3)], {"1": "0_0"})
    assert placed(draft, 1, ("cluster", "zone")) == {TaskId(0, 0): 1}
    assert counts(draft) == {"1": 0}


def test_without_tags_and_racks_the_least_loaded_clients_are_taken() -> None:
    """``StandbyTaskAssignorFactoryTest``: tags come first, then racks, then the default."""
    racks = {"1": "a"}
    assert isinstance(standby_task_assignor(AssignmentConfigs()), DefaultStandbyTaskAssignor)
    with_tags = AssignmentConfigs(rack_aware_assignment_tags=("az",))
    clients = [tagged("1", 1, 1), tagged("2", 1, 1)]
    for assignor in (standby_task_assignor(with_tags), standby_task_assignor(with_tags, racks)):
        assert isinstance(assignor, ClientTagAwareStandbyTaskAssignor)
        assert assignor.is_allowed_movement(*clients), "by their tags, not by the racks, which would not be known"


def test_the_configs_of_a_client_are_those_of_kafka_streams() -> None:
    properties = {
        "acceptable.recovery.lag": "5",
        "num.standby.replicas": "1",
        "rack.aware.assignment.tags": "zone, cluster",
        "client.tag.zone": "eu-1a",
        "client.tag.cluster": "k8s-1",
        "application.id": "orders",
    }
    configs = AssignmentConfigs.of(properties)
    assert configs == AssignmentConfigs(5, 2, 1, 600_000, TAGS)
    assert client_tags(properties) == {"zone": "eu-1a", "cluster": "k8s-1"}
    assert AssignmentConfigs.of({}) == AssignmentConfigs(10_000, 2, 0, 600_000, ())


FIVE = {f"client.tag.t{n}": "x" for n in range(5)}


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (FIVE | {"client.tag.t5": "x"}, "config client.tag.*: found 6 tags; expected at most 5."),
        (
            {"client.tag." + "k" * 21: "x"},
            f"config client.tag.{'k' * 21}: found a key of 21 characters; expected at most 20 characters.",
        ),
        (
            {"client.tag.zone": "v" * 31},
            "config client.tag.zone: found a value of 31 characters; expected at most 30 characters.",
        ),
        (
            {"rack.aware.assignment.tags": "zone"},
            "config rack.aware.assignment.tags: found 'zone' without a value; expected client.tag.zone on every "
            "client.",
        ),
        (
            {"rack.aware.assignment.tags": "a,b,c,d,e,f"},
            "config rack.aware.assignment.tags: found 6 tags; expected at most 5.",
        ),
        (
            {"acceptable.recovery.lag": "-1"},
            "config acceptable.recovery.lag: found -1; expected at least 0.",
        ),
        ({"max.warmup.replicas": "0"}, "config max.warmup.replicas: found 0; expected at least 1."),
        (
            {"probing.rebalance.interval.ms": "59999"},
            "config probing.rebalance.interval.ms: found 59999; expected at least 60000.",
        ),
        ({"num.standby.replicas": "one"}, "config num.standby.replicas: found 'one'; expected a whole number."),
    ],
)
def test_configs_beyond_their_limits_are_refused(properties: Mapping[str, str], message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        client_tags(properties)
    assert str(error.value) == f"{message} Correct the client's config."


def test_tags_at_their_limits_are_taken() -> None:
    properties = FIVE | {"rack.aware.assignment.tags": "t0,t1,t2,t3,t4", "client.tag.t0": "v" * 30}
    assert len(client_tags(properties)) == 5
    assert client_tags({"client.tag." + "k" * 20: "x"}) == {"k" * 20: "x"}
