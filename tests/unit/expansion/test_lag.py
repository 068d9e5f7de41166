"""The lag gate's decision (KIP-441's caught-up rule, by position)."""

from __future__ import annotations

import pytest
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.expansion.lag import decide, expected_sources
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan, Stage


def at(partition: int, position: int, end: int) -> PartitionProgress:
    return PartitionProgress(topic="c", partition=partition, position=position, end=end)


@pytest.mark.parametrize(
    ("position", "end", "threshold", "opens"),
    [
        (100, 100, 0, True),
        (99, 100, 0, False),
        (90, 100, 10, True),
        (89, 100, 10, False),
        (0, 0, 0, True),
        (105, 100, 0, True),
        (-1, 0, 1_000_000, False),
    ],
    ids=[
        "at the end",
        "one behind",
        "at the threshold",
        "past the threshold",
        "empty",
        "read later",
        "no position",
    ],
)
def test_one_partition(position: int, end: int, threshold: int, opens: bool) -> None:
    assert decide([at(0, position, end)], threshold).is_open is opens


def test_one_of_many_that_lags_holds_the_gate_and_is_named_first() -> None:
    decision = decide([at(p, 1_000, 1_000) for p in range(99)] + [at(99, 0, 1_000)], 999)
    assert not decision.is_open
    assert [str(each) for each in decision.holding] == ["c-99: 1000"]
    assert decision.lags[0].partition == 99


def test_a_partition_that_nobody_reports_holds_the_gate() -> None:
    decision = decide([at(0, 5, 5)], 10, expected=[("c", 0), ("c", 1)])
    assert [(each.partition, each.lag) for each in decision.holding] == [(1, None)]


def test_a_sub_topology_without_state_has_nothing_to_wait_for() -> None:
    assert decide([], 0).is_open


def test_expected_are_all_changelog_partitions_of_the_stage_and_no_repartition_topic() -> None:
    def move(kind: MoveKind, source: str) -> Move:
        return Move(kind=kind, source=source, target="g", store="s", source_partitions=2, target_partitions=4)

    first = Stage(index=1, name="a", subtopology=1, moves=(move(MoveKind.CHANGELOG, "a"),))
    second = Stage(
        index=2,
        name="b",
        subtopology=0,
        moves=(move(MoveKind.CHANGELOG, "b"), move(MoveKind.REPARTITION, "r")),
    )
    plan = Plan(
        application="x", generation=2, blue="x", green="x-g2", partitions=4, stages=(first, second), inputs=()
    )
    assert expected_sources(plan, 2) == {("b", 0), ("b", 1)}
    assert expected_sources(plan) == {("a", 0), ("a", 1), ("b", 0), ("b", 1)}
