"""When green counts as restored, how a leaking gate is found, and what is said about the pause."""

from __future__ import annotations

import pytest
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.expansion.prewarming import (
    beats,
    gate_group,
    moved,
    outlook,
    remark,
    restoration,
    restored_anew,
    shown_inputs,
)
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan, Stage

BEGINS = {"totals": {0: 0, 1: 40}}
ENDS = {"totals": {0: 100, 1: 90}}


def test_the_gates_group_is_covered_by_a_prefixed_acl_on_the_application() -> None:
    assert gate_group("shop-g2") == "shop-g2-gate"


def test_the_gate_is_shown_what_every_input_will_have() -> None:
    inputs = (
        InputPlan(topic="orders", policy=InputPolicy.PAUSED, partitioner="murmur2", current=4, target=8),
        InputPlan(topic="rates", policy=InputPolicy.FIXED, partitioner="murmur2", current=3, target=3),
    )
    assert shown_inputs(inputs) == {"orders": {0: 8}, "rates": {0: 3}}


def test_green_is_restored_when_every_changelog_has_been_applied_to_its_end() -> None:
    assert restoration(BEGINS, ENDS, {"totals": {0: 100, 1: 90}}).is_open


@pytest.mark.parametrize("behind", [{"totals": {0: 99, 1: 90}}, {"totals": {0: 100}}, {}])
def test_one_partition_that_is_behind_or_untold_holds_it(behind: dict[str, dict[int, int]]) -> None:
    decision = restoration(BEGINS, ENDS, behind)
    assert not decision.is_open


def test_a_changelog_without_records_has_nothing_to_restore() -> None:
    ends = {"totals": {0: 0, 1: 40}}
    assert restoration(BEGINS, ends, {}).is_open


def test_what_the_gate_is_shown_does_not_count_as_restored() -> None:
    assert not restoration(BEGINS, ENDS, {"orders": {0: 8}, "totals": {0: 100}}).is_open


def test_a_task_with_an_empty_store_of_windows_beside_a_full_store_restores_again() -> None:
    def move(store: str, kind: str) -> Move:
        topic = {"source": f"shop-{store}", "target": store, "store": store, "store_type": kind}
        return Move(kind=MoveKind.CHANGELOG, **topic, source_partitions=1, target_partitions=3)

    moves = (move("totals", "timestamped-key-value"), move("visits", "session"))
    stage = Stage(index=1, name="stage_1", subtopology=2, moves=moves)
    plan = Plan(application="shop", generation=2, blue="shop", green="g", partitions=3, stages=(stage,), inputs=())
    begins = {"totals": {0: 0, 1: 5, 2: 0}, "visits": {0: 0, 1: 0, 2: 0}}
    ends = {"totals": {0: 9, 1: 5, 2: 9}, "visits": {0: 9, 1: 9, 2: 0}}
    assert restored_anew(plan, begins, ends) == ("2_2",)
    assert restored_anew(plan, begins, begins) == ()


def test_a_topic_whose_ends_moved_was_written_to() -> None:
    assert moved(ENDS, ENDS) == ()
    assert moved(ENDS, {"totals": {0: 101, 1: 90}}) == ("totals",)
    assert moved(ENDS, {}) == ("totals",)


def test_nothing_is_said_of_a_pause_that_has_not_ended() -> None:
    assert remark({"quiesce": 1.0}, {}) == ""


def test_without_pre_warming_it_is_said_what_it_would_have_saved() -> None:
    said = remark({"restore": 12.34}, {})
    assert "12.3 s" in said
    assert "start_gated" in said


def test_with_pre_warming_it_is_said_what_it_has_saved() -> None:
    said = remark({"restore": 1.2}, {"restore": 45.6, "stop": 0.5})
    assert "45.6 s ahead" in said
    assert "1.2 s of the pause" in said


def test_every_instance_is_known_by_what_it_has_told_beside_its_positions() -> None:
    texts = {
        "totals": {0: "by a1 7", 1: "by b2", 2: "by a1 6"},
        "orders": {0: "refused: by c3 9"},
        "t": {0: "by d4 1"},
    }
    assert beats(texts, ["totals", "visits"]) == {"a1": 7, "b2": 0}
    assert beats({"totals": {0: ""}}, ["totals"]) == {}


def test_who_approves_is_told_that_it_was_restored_again() -> None:
    again = {"restore": 45.6, "stop": 0.5, "given up": 31.2}
    assert "31.2 s were given up" in outlook(again)
    assert "31.2 s were given up" in remark({"restore": 1.2}, again)
    assert "given up" not in outlook({"restore": 45.6, "stop": 0.5})
