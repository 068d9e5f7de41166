"""Foreign-key joins in the topology: counts, order, and the left table whose partition a subscription names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.formats.subscription_wrapper import LeftTable
from kafka_rescale.core.plan.plan import MoveKind, Plan
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.core.topology.describe import parse_describe
from kafka_rescale.core.topology.partition_counts import partition_counts
from kafka_rescale.core.topology.topology import SubTopology, Topology, foreign_key_kind

DESCRIBED = (Path(__file__).parents[2] / "data" / "foreign-key.topology.txt").read_text()
REGISTRATION, RESPONSE = "fk-subscription-registration-topic", "fk-subscription-response-topic"
STORES = {
    "left-table": "timestamped-key-value",
    "joined": "timestamped-key-value",
    "right-table": "timestamped-key-value",
    "fk-subscription-store": "foreign-key-subscription",
}


def application(**changes: Any) -> Application:
    """The join of left and right as Kafka Streams describes it."""
    fields = {
        "application_id": "app",
        "partitions": 8,
        "inputs": [{"topic": t, "policy": "paused"} for t in ("left", "right")],
        "outputs": [{"topic": "out"}],
        "topology": DESCRIBED,
        "stores": [{"name": name, "type": kind} for name, kind in STORES.items()],
        "lifecycle": {"type": "shell", "start": "true", "stop": "true", "status": "true"},
        **changes,
    }
    return Application.model_validate(fields)


def plan(left: int, right: int, target: int, **changes: Any) -> Plan:
    """The plan, if both tables have so many partitions."""
    declared = application(**changes)
    current = {
        "left": left,
        "right": right,
        "out": 3,
        f"app-{RESPONSE}": left,
        f"app-{REGISTRATION}": right,
        **{f"app-{store}-changelog": left for store in ("left-table", "joined")},
        **{f"app-{store}-changelog": right for store in ("right-table", "fk-subscription-store")},
    }
    topology = parse_describe(DESCRIBED)
    return build_plan(declared, topology, blue="app", generation=2, current=current, target=target)


def test_its_topics_are_internal_and_no_inputs() -> None:
    topology = parse_describe(DESCRIBED)
    assert topology.inputs == ("left", "right")
    assert topology.repartitions == {REGISTRATION, RESPONSE}
    assert topology.outputs == ("out",)


@pytest.mark.parametrize(
    ("topic", "kind"),
    [
        (REGISTRATION, "registration"),
        (RESPONSE, "response"),
        ("KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic", "registration"),
        ("orders-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic", "response"),
        ("my-registration-topic", ""),
        ("by-key-repartition", ""),
    ],
)
def test_they_are_known_by_their_names(topic: str, kind: str) -> None:
    assert foreign_key_kind(topic) == kind


def test_the_registration_has_the_count_of_the_right_table_and_the_response_that_of_the_left() -> None:
    topology = parse_describe(DESCRIBED)
    assert partition_counts(topology, {"left": 3, "right": 6}, {}) == {REGISTRATION: 6, RESPONSE: 3}


def test_tables_behind_repartition_topics_decide_with_the_counts_that_these_get() -> None:
    behind = Topology(
        (
            SubTopology(0, ("l",), (), ("by-l-repartition",)),
            SubTopology(1, ("r",), (), ("by-r-repartition",)),
            SubTopology(2, ("by-l-repartition", RESPONSE), ("left-table",), (REGISTRATION, "again-repartition")),
            SubTopology(3, ("by-r-repartition", REGISTRATION), ("fk-subscription-store",), (RESPONSE,)),
            SubTopology(4, ("again-repartition",), ("count",), ()),
        )
    )
    counts = partition_counts(behind, {"l": 2, "r": 5}, {"by-l-repartition": 4})
    assert counts == {
        "by-l-repartition": 4,
        "by-r-repartition": 5,
        RESPONSE: 4,
        REGISTRATION: 5,
        "again-repartition": 4,
    }
    assert [s.id for s in behind.downstream_first()] == [4, 3, 2, 1, 0]


def test_the_tables_feed_each_other_and_the_right_one_comes_first() -> None:
    assert [s.id for s in parse_describe(DESCRIBED).downstream_first()] == [1, 0]


def test_a_table_joined_with_itself_is_one_sub_topology() -> None:
    itself = Topology((SubTopology(0, ("t", REGISTRATION, RESPONSE), ("s",), (REGISTRATION, RESPONSE)),))
    assert itself.downstream_first() == itself.subtopologies
    assert partition_counts(itself, {"t": 3}, {}) == {REGISTRATION: 3, RESPONSE: 3}


def test_two_tables_that_subscribe_to_each_other_have_some_order() -> None:
    other = [t.replace("fk-", "kf-") for t in (REGISTRATION, RESPONSE)]
    both = Topology(
        (
            SubTopology(0, ("l", RESPONSE, other[0]), ("a",), (REGISTRATION, other[1])),
            SubTopology(1, ("r", other[1], REGISTRATION), ("b",), (other[0], RESPONSE)),
        )
    )
    assert {s.id for s in both.downstream_first()} == {0, 1}


def test_subscriptions_are_moved_with_the_counts_of_the_left_table() -> None:
    moves = {m.store: m for m in plan(3, 4, 8).moves}
    left = LeftTable(partitioner="murmur2", key_topic="left", source_partitions=3, target_partitions=8)
    assert {name: m.left for name, m in moves.items() if m.left} == {
        "fk-subscription-store": left,
        REGISTRATION: left,
    }
    assert {(m.store, m.source_partitions, m.target_partitions) for m in moves.values()} == {
        ("left-table", 3, 8),
        ("joined", 3, 8),
        (RESPONSE, 3, 8),
        ("right-table", 4, 8),
        ("fk-subscription-store", 4, 8),
        (REGISTRATION, 4, 8),
    }
    assert {m.store for m in plan(3, 4, 8).repartitions} == {REGISTRATION, RESPONSE}
    assert all(m.kind is MoveKind.REPARTITION for m in plan(3, 4, 8).repartitions)


def again(current: dict[str, int], blue: str, target: int, **known: dict[str, Any]) -> LeftTable | None:
    """The left table of the subscriptions, in a plan for inputs that are repartitioned."""
    inputs = [{"topic": t, "policy": "repartitioned"} for t in ("left", "right")]
    internal = [f"{blue}-{t}" for t in (REGISTRATION, RESPONSE, *(f"{s}-changelog" for s in STORES))]
    return next(
        m.left
        for m in build_plan(
            application(inputs=inputs),
            parse_describe(DESCRIBED),
            blue=blue,
            generation=3,
            current={"out": 3, **dict.fromkeys(internal, 4 if "earlier" in known else 8), **current},
            target=target,
            **known,
        ).moves
        if m.store == "fk-subscription-store"
    )


@pytest.mark.parametrize("target", [16, 4], ids=["on", "back"])
def test_after_an_expansion_the_left_table_is_what_has_followed_the_input(target: int) -> None:
    inputs = [{"topic": t, "policy": "repartitioned"} for t in ("left", "right")]
    renamed = {i.declared: i.green_topic for i in plan(4, 4, 8, inputs=inputs).inputs}
    assert renamed == {"left": "left-p8", "right": "right-p8"}
    left = again(dict.fromkeys(renamed.values(), 8), "app-g2", target, renamed=renamed)
    assert left == LeftTable(
        partitioner="murmur2", key_topic="left", source_partitions=8, target_partitions=target
    )


def test_of_a_left_table_grown_by_hand_subscriptions_name_partitions_of_the_count_before() -> None:
    left = again({"left": 8, "right": 8}, "app", 8, earlier={"left": 4, "right": 4})
    assert left == LeftTable(partitioner="murmur2", key_topic="left", source_partitions=4, target_partitions=8)


def test_a_right_table_that_keeps_its_count_still_has_its_subscriptions_rewritten() -> None:
    inputs = [{"topic": "left", "policy": "paused"}, {"topic": "right", "policy": "fixed"}]
    move = next(m for m in plan(3, 4, 8, inputs=inputs).moves if m.store == "fk-subscription-store")
    assert (move.source_partitions, move.target_partitions) == (4, 4)
    assert move.left == LeftTable(
        partitioner="murmur2", key_topic="left", source_partitions=3, target_partitions=8
    )


def test_topics_of_the_join_are_partitioned_as_the_tables_that_read_them() -> None:
    inputs = [
        {"topic": "left", "policy": "paused", "partitioner": "crc32"},
        {"topic": "right", "policy": "paused"},
    ]
    moves = {m.store: m for m in plan(3, 4, 8, inputs=inputs).moves}
    assert (moves[REGISTRATION].partitioner, moves[RESPONSE].partitioner) == ("murmur2", "crc32")
    left = moves[REGISTRATION].left
    assert left is not None
    assert left.partitioner == "crc32"


def two_joins(*stores: str) -> tuple[Application, Topology]:
    """Tables of 2 and 3 partitions. Both are joined with the same right table."""
    first, second = "one-subscription-registration-topic", "two-subscription-registration-topic"
    topology = Topology(
        (
            SubTopology(0, ("a",), (), (first,)),
            SubTopology(1, ("b",), (), (second,)),
            SubTopology(2, ("r", first, second), stores, ()),
        )
    )
    declared = application(
        inputs=[{"topic": t, "policy": "paused"} for t in ("a", "b", "r")],
        topology=None,
        outputs=[],
        subtopologies=[
            {"sources": s.sources, "stores": s.stores, "sinks": s.sinks} for s in topology.subtopologies
        ],
        stores=[{"name": s, "type": "foreign-key-subscription"} for s in stores],
    )
    return declared, topology


def test_two_joins_with_one_right_table_are_told_apart_by_their_names() -> None:
    declared, topology = two_joins("one-subscription-store", "two-subscription-store")
    current = {"a": 2, "b": 3, "r": 4}
    current |= {f"app-{n}-subscription-store-changelog": 4 for n in ("one", "two")}
    current |= {f"app-{n}-subscription-registration-topic": 4 for n in ("one", "two")}
    found = build_plan(declared, topology, blue="app", generation=2, current=current, target=8)
    lefts = {m.store: m.left.source_partitions for m in found.changelogs if m.left}
    assert lefts == {"one-subscription-store": 2, "two-subscription-store": 3}


def test_two_joins_that_can_not_be_told_apart_are_refused() -> None:
    declared, topology = two_joins("KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000010")
    current = dict.fromkeys(f"app-{n}-subscription-registration-topic" for n in ("one", "two")) | {
        "a": 2,
        "b": 3,
        "r": 4,
        "app-KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000010-changelog": 4,
    }
    with pytest.raises(InvalidInput, match=r"found 2 left tables .* Give each join a name by `TableJoined\.as"):
        build_plan(declared, topology, blue="app", generation=2, current=current, target=8)  # type: ignore[arg-type]


def lefts_of_one_store(partitioner: str, counts: tuple[int, int]) -> LeftTable | None:
    """The left table of a store that two joins may own, if their left tables have these counts."""
    store = "KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000010"
    declared, topology = two_joins(store)
    inputs = tuple(i.model_copy(update={"partitioner": partitioner}) for i in declared.inputs)
    current = dict(zip("abr", (*counts, 4), strict=True)) | {f"app-{store}-changelog": 4}
    current |= {f"app-{n}-subscription-registration-topic": 4 for n in ("one", "two")}
    declared = declared.model_copy(update={"inputs": inputs})
    found = build_plan(declared, topology, blue="app", generation=2, current=current, target=8)
    return next(m.left for m in found.changelogs if m.store == store)


@pytest.mark.parametrize("partitioner", ["murmur2", "crc32", "linear-hashing:2"])
def test_two_left_tables_that_place_their_keys_alike_need_not_be_told_apart(partitioner: str) -> None:
    found = lefts_of_one_store(partitioner, (2, 2))
    assert found is not None
    assert (found.partitioner, found.source_partitions, found.target_partitions) == (partitioner, 2, 8)
    with pytest.raises(InvalidInput, match="found 2 left tables"):
        lefts_of_one_store(partitioner, (2, 4))


@pytest.mark.parametrize("kind", ["", "static:"])
def test_a_function_of_the_user_may_place_the_keys_of_two_left_tables_differently(kind: str) -> None:
    with pytest.raises(InvalidInput, match="found 2 left tables"):
        lefts_of_one_store(f"{kind}tests.support.user_partitioners:numbered", (2, 2))


def test_left_sources_with_different_partitioners_are_refused() -> None:
    topology = Topology((SubTopology(0, ("left", "right"), (), (REGISTRATION,)),))
    declared = application(
        inputs=[
            {"topic": "left", "policy": "paused", "partitioner": "crc32"},
            {"topic": "right", "policy": "paused"},
        ]
    )
    from kafka_rescale.core.plan.foreign_key_joins import partitioner_of_sources

    with pytest.raises(InvalidInput, match="found partitioners crc32, murmur2; expected one partitioner"):
        partitioner_of_sources(declared, topology, topology.subtopologies[0])
