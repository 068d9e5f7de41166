"""What the demo calls the right order of the tasks, and what it needs to have passed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from testbed.demo_report import PARTS, Outcome, stages_in_order

STAGES = [f"stage_{n}_of_shop.{task}" for n in (1, 2) for task in ("expand", "restore", "warm_up", "lag_gate")]
BEFORE = ["preflight", "plan", "approve_plan"]
REST = ["prewarm", "catch_up", "gate_all", "prove", "approve_cutover", "cutover", "verify", "callback"]
RIGHT = [*BEFORE, *STAGES, *REST]
PASSED = Outcome(
    run_id="manual",
    state="success",
    order=RIGHT,
    report={"passed": True},
    timings={part: 0.1 for part in PARTS},
    prewarmed={},
    flights=10,
    compared={"totals": 10},
    differences=[],
    was_live=True,
)


def moved(task: str, before: str) -> list[str]:
    """The right order but for one task, which began before another."""
    order = [each for each in RIGHT if each != task]
    order.insert(order.index(before), task)
    return order


def test_the_most_downstream_stage_begins_and_the_cutover_follows_all_of_them() -> None:
    assert stages_in_order(RIGHT)
    assert stages_in_order(moved("gate_all", "catch_up"))


@pytest.mark.parametrize(
    "order",
    [
        [*BEFORE, *STAGES[4:], *STAGES[:4], *REST],
        moved("catch_up", STAGES[6]),
        [*BEFORE, *STAGES, *REST[:-1]],
        [*BEFORE, *REST],
        moved(STAGES[1], STAGES[0]),
        moved("verify", "cutover"),
        moved("cutover", "gate_all"),
        moved("cutover", "prove"),
        moved("plan", "callback"),
        [task for task in RIGHT if task != STAGES[3]],
        [],
    ],
    ids=[
        "stages the other way round",
        "catch_up before the last stage",
        "no callback",
        "no stage",
        "restored before it was expanded",
        "verified before the cutover",
        "cut over before the gate",
        "cut over before the proof",
        "planned at the end",
        "a stage without its gate",
        "nothing",
    ],
)
def test_every_other_order_fails_the_demo(order: list[str]) -> None:
    assert not stages_in_order(order)


def test_a_demo_in_which_everything_is_as_it_should_be_has_passed() -> None:
    assert PASSED.passed
    assert PASSED.shortcomings == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"state": "failed"}, "the DAG run ended as failed"),
        ({"report": {}}, "verify did not pass"),
        ({"report": {"passed": False}}, "verify did not pass"),
        ({"compared": {}}, "no final aggregate was compared"),
        ({"differences": ["totals: N109UW"]}, "final aggregates differ"),
        ({"order": RIGHT[1:]}, "tasks began in another order"),
        ({"was_live": False}, "the input had ended before the run"),
        (
            {"timings": {part: 0.1 for part in PARTS if part != "first_output"}},
            "parts of the downtime were not measured: first_output",
        ),
    ],
)
def test_a_demo_in_which_something_is_missing_has_failed_and_says_what(changed: dict[str, Any], said: str) -> None:
    outcome = replace(PASSED, **changed)
    assert not outcome.passed
    assert outcome.shortcomings == [said]
