"""The pass of held processes, which processes say that they wait, and what is said about the pause."""

from __future__ import annotations

import pytest
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.expansion.holding import Door, has_pass, pass_of, processes, remark, start_offsets
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan, Stage


def move(kind: MoveKind, name: str, partitions: int) -> Move:
    return Move(
        kind=kind,
        source=f"shop-{name}",
        target=f"g-{name}",
        store=name,
        source_partitions=2,
        target_partitions=partitions,
    )


INPUTS = (
    InputPlan(topic="orders", policy=InputPolicy.PAUSED, partitioner="murmur2", current=4, target=8),
    InputPlan(
        topic="rates",
        policy=InputPolicy.REPARTITIONED,
        partitioner="murmur2",
        current=3,
        target=6,
        successor="rates-6",
    ),
)
MOVES = (move(MoveKind.CHANGELOG, "totals-changelog", 6), move(MoveKind.REPARTITION, "by-day-repartition", 8))
STAGE = Stage(index=1, name="stage_1", subtopology=0, moves=MOVES)
PLAN = Plan(application="shop", generation=2, blue="shop", green="g", partitions=8, stages=(STAGE,), inputs=INPUTS)


def test_the_start_offsets_are_those_of_inputs_and_repartition_topics() -> None:
    assert start_offsets(PLAN) == 8 + 6 + 8


def test_the_pass_stands_beside_an_input_and_the_seats_beside_an_internal_topic() -> None:
    offsets, texts = pass_of(PLAN, 7)
    assert offsets == {"orders": {0: 7}, "g-by-day-repartition": dict.fromkeys(range(8), 7)}
    assert texts["orders"] == {0: "hold 22"}
    assert has_pass(PLAN, 7, offsets)
    assert not has_pass(PLAN, 8, offsets)
    assert not has_pass(PLAN, 0, {"orders": {0: 0}})
    assert not has_pass(PLAN, 7, {})


@pytest.mark.parametrize(
    ("members", "count"),
    [
        (
            ["shop-u1-StreamThread-1-consumer-x", "shop-u1-StreamThread-2-consumer-y", "shop-u2-StreamThread-1-c"],
            2,
        ),
        (["pod-0-x"], 0),
        (["shop-u1-StreamThread-1-consumer-x", "5f3c"], 0),
        ([], 0),
    ],
)
def test_processes_are_counted_by_the_names_of_their_threads(members: list[str], count: int) -> None:
    assert processes(members) == count


def told(**beats: int) -> dict[str, dict[int, str]]:
    return {"t": {p: f"by {name} {beat} for 7" for p, (name, beat) in enumerate(beats.items())}}


def test_a_process_waits_if_it_has_told_so_twice_and_not_long_ago() -> None:
    door = Door(7)
    door.look(told(a=3), 0)
    assert door.waiting(0) == 0, "it may have ended before"
    door.look(told(a=4), 1)
    assert door.waiting(1) == 1
    door.look(told(a=4), 9)
    assert door.waiting(9) == 0


def test_as_many_as_expected_are_complete_at_once_and_fewer_after_a_while() -> None:
    door = Door(7, expected=2)
    door.look(told(a=1, b=1), 0)
    door.look(told(a=2, b=1), 1)
    assert not door.is_complete(1)
    door.look(told(a=3, b=2), 2)
    assert door.is_complete(2)
    alone = Door(7, expected=2)
    for second in range(20):
        alone.look(told(a=second), second)
    assert not alone.is_complete(10)
    assert alone.is_complete(19)


def test_what_waits_with_another_pass_does_not_count() -> None:
    door = Door(8)
    for second in range(3):
        door.look(told(a=second), second)
    assert door.waiting(2) == 0


def test_it_is_said_what_a_held_start_has_saved_or_would_have() -> None:
    assert remark({"start": 3.0}) == ""
    assert "3.0 s of the pause went by" in remark({"start": 3.0, "total": 5.0})
    assert "start_held" in remark({"start": 3.0, "total": 5.0})
    assert "joined 0.4 s after" in remark({"release": 0.4, "total": 2.0})
    # The held processes were gone, and green was started anew.
    assert "Not held" in remark({"release": 0.4, "start": 3.0, "total": 5.0})
