"""From an application and its counts to stages: 4 to 8, 4 to 6, 8 to 4."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.core.application.generation_names import GenerationNames
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.formats.subscription_wrapper import LeftTable
from kafka_rescale.core.plan.instances import blue, green
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan
from kafka_rescale.core.plan.planning import build_plan, green_application_id
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.operations.application.load import topology_of

from tests.support.application_files import CHAIN
from tests.support.plans import IN_PLACE_TOPICS

GROW_ONLY_STATE = {
    "inputs": [{"topic": "orders", "policy": "fixed"}],
    "repartitions": [
        {"name": "by-customer", "count": "start_command"},
        {"name": "by-region", "count": "start_command", "partitioner": "crc32"},
    ],
}


def application(**changes: Any) -> tuple[Application, Topology]:
    """The chain orders → per-customer → per-region → totals, with some fields changed."""
    declared = Application.model_validate({**CHAIN, **changes})
    return declared, topology_of(declared)


def plan(current: int, target: int, blue: str = "orders-app", generation: int = 2, **changes: Any) -> Plan:
    """The plan when every topic has ``current`` partitions."""
    internal = [f"by-{x}-repartition" for x in ("customer", "region")]
    internal += [f"per-{x}-changelog" for x in ("customer", "region")]
    counts = dict.fromkeys(("orders", "totals", *(f"{blue}-{name}" for name in internal)), current)
    declared, topology = application(**changes)
    return build_plan(declared, topology, blue=blue, generation=generation, current=counts, target=target)


RAW = {
    "inputs": [{"topic": "orders", "policy": "unkeyed"}, {"topic": "raw", "policy": "fixed"}],
    "subtopologies": [*CHAIN["subtopologies"], {"sources": ["raw"], "stores": ["per-raw"], "sinks": ["totals"]}],
    "stores": [*CHAIN["stores"], {"name": "per-raw", "type": "timestamped-key-value"}],
}


@pytest.mark.parametrize(("repartitions", "partitions"), [(GROW_ONLY_STATE["repartitions"], 4), ([], 12)])
def test_blue_is_started_with_the_count_that_its_program_sets_whatever_else_it_reads(
    repartitions: list[dict[str, str]], partitions: int
) -> None:
    """Kafka Streams refuses any other count: "existing internal topic has invalid partitions"."""
    declared, topology = application(**RAW, repartitions=repartitions)
    counts = {f"orders-app-{name}": 4 for name in IN_PLACE_TOPICS} | {"orders": 4, "totals": 4}
    counts |= {"raw": 12, "orders-app-per-raw-changelog": 12}
    found = build_plan(declared, topology, blue="orders-app", generation=2, current=counts, target=8)
    assert (blue(found).partitions, green(found).partitions) == (partitions, 8)
    begun_before = found.model_copy(update={"started_with": 0})
    assert begun_before.fingerprint == found.fingerprint, "an expansion in progress is gone on with"


def test_stages_go_from_the_most_downstream_up() -> None:
    assert [(s.index, s.name, s.subtopology) for s in plan(4, 8).stages] == [
        (1, "stage_1_subtopology_2", 2),
        (2, "stage_2_subtopology_1", 1),
        (3, "stage_3_subtopology_0", 0),
    ]


def test_a_stage_has_its_stores_and_the_repartition_topics_that_it_reads() -> None:
    first, second, third = plan(4, 8).stages
    assert [(m.kind, m.source, m.target) for m in first.moves] == [
        (MoveKind.CHANGELOG, "orders-app-per-region-changelog", "orders-app-g2-per-region-changelog"),
        (MoveKind.REPARTITION, "orders-app-by-region-repartition", "orders-app-g2-by-region-repartition"),
    ]
    assert [m.store for m in second.changelogs] == ["per-customer"]
    assert [m.store for m in second.repartitions] == ["by-customer-repartition"]
    assert third.moves == ()


@pytest.mark.parametrize(("current", "target"), [(4, 8), (4, 6), (1, 100)])
def test_inputs_and_internal_topics_grow_to_the_target(current: int, target: int) -> None:
    grown = plan(current, target)
    assert {(m.source_partitions, m.target_partitions) for m in grown.moves} == {(current, target)}
    assert [(i.topic, i.current, i.target) for i in grown.inputs] == [("orders", current, target)]


def test_a_fixed_input_and_enforced_counts_allow_fewer_partitions() -> None:
    shrunk = plan(8, 4, **GROW_ONLY_STATE)
    assert {(m.source_partitions, m.target_partitions) for m in shrunk.moves} == {(8, 4)}
    assert [(i.current, i.target) for i in shrunk.inputs] == [(8, 8)]


@pytest.mark.parametrize("target", [8, 2])
def test_behind_a_repartition_of_a_fixed_count_nothing_grows(target: int) -> None:
    """As ``Repartitioned.numberOfPartitions(1)`` before a top ten of all keys, beside parts that grow."""
    counts = dict.fromkeys(("orders", "totals", *(f"orders-app-{name}" for name in IN_PLACE_TOPICS)), 4)
    counts |= {f"orders-app-{name}": 1 for name in ("by-region-repartition", "per-region-changelog")}
    declared, topology = application(
        inputs=[{"topic": "orders", "policy": "fixed"}],
        repartitions=[{"name": "by-customer", "count": "start_command"}, {"name": "by-region", "count": "fixed"}],
    )
    found = build_plan(declared, topology, blue="orders-app", generation=2, current=counts, target=target)
    assert {m.store: (m.source_partitions, m.target_partitions) for m in found.moves} == {
        "per-region": (1, 1),
        "by-region-repartition": (1, 1),
        "per-customer": (4, target),
        "by-customer-repartition": (4, target),
    }
    assert (blue(found).partitions, green(found).partitions) == (4, target)


def test_moves_carry_store_type_and_partitioner() -> None:
    by_store = {m.store: m for m in plan(4, 8, **GROW_ONLY_STATE).moves}
    assert by_store["per-customer"].store_type == "timestamped-key-value"
    assert by_store["by-region-repartition"].partitioner == "crc32"
    assert by_store["by-customer-repartition"].partitioner == "murmur2"


def test_only_outputs_that_are_declared_to_grow_do_so_and_in_the_stage_that_writes_them() -> None:
    assert all(not s.grow_outputs for s in plan(4, 8).stages)
    first, *others = plan(4, 8, outputs=[{"topic": "totals", "partitions": 12}]).stages
    assert [(g.topic, g.current, g.target) for g in first.grow_outputs] == [("totals", 4, 12)]
    assert all(not s.grow_outputs for s in others)
    assert not plan(4, 8, outputs=[{"topic": "totals", "partitions": 3}]).stages[0].grow_outputs


def test_generations_are_named_after_the_first() -> None:
    assert green_application_id("orders-app", 1) == "orders-app"
    third = plan(4, 8, blue="orders-app-g2", generation=3)
    assert (third.blue, third.green) == ("orders-app-g2", "orders-app-g3")
    assert third.copy_group == "orders-app-rescale-3"
    assert third.moves[0].source == "orders-app-g2-per-region-changelog"


def test_a_plan_is_a_value_that_survives_json_and_has_one_fingerprint() -> None:
    first = plan(4, 8)
    assert Plan.model_validate_json(first.model_dump_json()) == first
    assert first.fingerprint == plan(4, 8).fingerprint
    assert first.fingerprint not in {plan(4, 6).fingerprint, plan(4, 8, generation=3).fingerprint}


def test_internal_topics_carry_another_prefix_where_the_program_overrides_it() -> None:
    declared, topology = application(internal_topic_prefix="shared")
    counts = {"orders": 4, "totals": 4} | {
        f"shared-g2-{name}": 4
        for name in ("by-customer-repartition", "by-region-repartition", "per-customer-changelog")
    }
    counts["shared-g2-per-region-changelog"] = 4
    made = build_plan(declared, topology, blue="orders-app-g2", generation=3, current=counts, target=8)
    assert (made.blue, made.green) == ("orders-app-g2", "orders-app-g3")
    assert {(m.source, m.target) for m in made.changelogs} == {
        (f"shared-g2-per-{x}-changelog", f"shared-g3-per-{x}-changelog") for x in ("customer", "region")
    }


def test_the_next_generation_may_have_other_names() -> None:
    made = plan(4, 8, green_names={"per-region": "KSTREAM-5", "by-region": "KSTREAM-5"})
    assert [(m.store, m.source, m.target) for m in made.stages[0].moves] == [
        ("per-region", "orders-app-per-region-changelog", "orders-app-g2-KSTREAM-5-changelog"),
        ("by-region-repartition", "orders-app-by-region-repartition", "orders-app-g2-KSTREAM-5-repartition"),
    ]


def test_a_changelog_is_placed_by_what_its_sub_topology_reads() -> None:
    assert {m.store: m.key_topic for m in plan(4, 8).moves} == {
        "per-customer": "by-customer-repartition",
        "by-customer-repartition": "by-customer-repartition",
        "per-region": "by-region-repartition",
        "by-region-repartition": "by-region-repartition",
    }


def test_a_table_whose_changelog_is_its_input_is_not_moved() -> None:
    stores = [{**CHAIN["stores"][0], "changelog": "source"}, CHAIN["stores"][1]]
    assert [m.store for m in plan(4, 8, stores=stores).changelogs] == ["per-region"]


def test_an_output_that_is_chosen_per_record_grows_with_the_sink_that_chooses() -> None:
    text = """
    Sub-topology: 0
      Source: s (topics: [orders])
        --> k
      Sink: k (extractor class: app.Router@1)
        <-- s
    """
    changes = {
        "topology": text,
        "subtopologies": [],
        "stores": [],
        "outputs": [{"topic": "totals", "partitions": 8}],
    }
    assert [g.topic for g in plan(4, 8, **changes).stages[0].grow_outputs] == ["totals"]


def test_only_the_suffix_of_repartition_topics_is_kept_apart_from_their_names() -> None:
    names = GenerationNames("app", {"by-region": "KSTREAM-5", "JOIN-06-topic": "JOIN-08-topic"})
    assert names.repartition("by-region-repartition") == "app-KSTREAM-5-repartition"
    assert names.repartition("JOIN-06-topic") == "app-JOIN-08-topic"
    assert names.repartition("JOIN-07-topic") == "app-JOIN-07-topic"


COPIED = Move(
    kind=MoveKind.CHANGELOG,
    source="a",
    target="b",
    store="s",
    store_type="key-value",
    key_topic="orders",
    source_partitions=1,
    target_partitions=8,
)


@pytest.mark.parametrize(
    "changes",
    [
        {"partitioner": "crc32"},
        {"key_topic": "customers"},
        {"store_type": "window"},
        {"partitioning_key": "prefix:4"},
        {"source_partitions": 2},
        {"target_partitions": 6},
        {"left": LeftTable(partitioner="murmur2", source_partitions=1, target_partitions=8)},
        {"grown_from": (1,)},
    ],
)
def test_the_fingerprint_of_a_move_tells_whatever_decides_where_records_go(changes: dict[str, Any]) -> None:
    assert COPIED.model_copy(update=changes).fingerprint != COPIED.fingerprint


def test_the_fingerprint_of_a_move_is_not_of_what_its_records_are_called_or_checked_by() -> None:
    read_back = Move.model_validate_json(COPIED.model_dump_json())
    assert read_back.fingerprint == COPIED.fingerprint
    changes = {"source": "x", "target": "y", "store": "z", "earlier_partitions": 4, "producers": 2}
    assert COPIED.model_copy(update=changes).fingerprint == COPIED.fingerprint
