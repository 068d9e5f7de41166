"""What counts as the right order of the demo's tasks, and what must have passed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.job_results import JobResult
from rich.console import Console

from testbed.demo_report import PARTS, Outcome, stages_in_order
from testbed.demo_timeline import Span, print_timeline, timeline

STAGES = [f"stage_{n}_of_shop.{task}" for n in (1, 2) for task in ("expand", "restore", "warm_up", "lag_gate")]
BEFORE = ["preflight", "plan", "approve_plan"]
REST = ["prewarm", "catch_up", "gate_all", "prove", "approve_cutover", "await_window", "cutover"]
REST += ["verify", "callback"]
RIGHT = [*BEFORE, *STAGES, *REST]


def spans(order: list[str]) -> list[Span]:
    """Tasks of ten seconds, one after the other."""
    return [Span(task, begins=10.0 * n, seconds=10.0, worked=2.5) for n, task in enumerate(order)]


PASSED = Outcome(
    run_id="manual",
    state="success",
    tasks=spans(RIGHT),
    proof={},
    is_promoted=True,
    report={"passed": True},
    timings={part: 0.1 for part in PARTS},
    prewarmed={},
    flights=10,
    compared={"totals": 10},
    differences=[],
    was_live=True,
)


def moved(task: str, before: str) -> list[str]:
    """The right order, except for one task that began before another."""
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
        ({"tasks": spans(RIGHT[1:])}, "tasks began in another order"),
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


def test_the_timeline_has_every_task_that_ran_and_for_how_long_its_job_worked() -> None:
    at = "2026-11-25T18:00:{:02d}.500000Z"
    tasks = [
        {"task_id": f"stage_2_of_shop.{task}", "state": state, "start_date": begin, "end_date": end}
        for task, state, begin, end in (
            ("lag_gate", "skipped", at.format(30), at.format(30)),
            ("restore", "success", at.format(4), at.format(14)),
            ("warm_up", None, None, None),
            ("expand", "success", at.format(1), at.format(3)),
        )
    ]
    client: Any = SimpleNamespace(tasks=lambda *_: tasks)
    result = JobResult(job="restore/2", run="r", attempt=1, state="done", seconds=1.23)
    found = timeline(client, "expand_shop", "r", {result.job: result})
    expand, restore = (f"stage_2_of_shop.{task}" for task in ("expand", "restore"))
    assert found == [Span(expand, 0.0, 2.0), Span(restore, 3.0, 10.0, 1.2)]


def test_its_picture_shows_the_work_of_jobs_within_their_tasks() -> None:
    console = Console(record=True, width=120)
    print_timeline(console, spans(["restore", "warm_up"]))
    text = console.export_text()
    assert "Where the 20 s of the run went" in text
    assert "█████░░░░░░░░░░░░░░░" in text
    assert f"{' ' * 20}█████░" in text
