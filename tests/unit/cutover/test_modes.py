"""The two modes: both have all the steps that differ, and no other operation asks for the mode."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest
from kafka_rescale.core.application.streams import Mode
from kafka_rescale.operations.modes.blue_green import BlueGreen
from kafka_rescale.operations.modes.choice import mode_of
from kafka_rescale.operations.modes.in_place import InPlace
from kafka_rescale.operations.modes.steps import ModeSteps

from tests.support.house.sources import parsed_file
from tests.support.plans import in_place_plan, plan_for

OPERATIONS = Path(__file__).parents[3] / "plugins" / "kafka_rescale" / "operations"
QUESTION = {"plan", "situation", "described", "target", "application"}
"""The values that have an ``is_in_place``. A single move of a plan may be asked in either mode."""
SENTENCES = {"cutover/persistence.py", "modes/choice.py"}
"""The files that may ask: the choice itself, and a sentence about what is down, which the modes need too."""


def questions(file: Path) -> int:
    """Return how often a module asks for the mode of an expansion."""
    asked = [n for n in ast.walk(parsed_file(file)) if isinstance(n, ast.Attribute)]
    in_place = [n for n in asked if n.attr == "is_in_place"]
    named = [n for n in asked if n.attr == "IN_PLACE"]
    owners = [n.value.attr if isinstance(n.value, ast.Attribute) else getattr(n.value, "id", "") for n in in_place]
    return sum(owner in QUESTION for owner in owners) + len(named)


def test_only_the_choice_of_a_mode_asks_for_it() -> None:
    files = {str(f.relative_to(OPERATIONS)): questions(f) for f in OPERATIONS.rglob("*.py")}
    asking = {name for name, count in files.items() if count and not name.startswith("modes/in_place")}
    assert asking == SENTENCES


def test_a_question_is_seen(tmp_path: Path) -> None:
    (file := tmp_path / "example.py").write_text(
        "a = journal.plan.is_in_place\nb = plan.is_in_place or mode is Mode.IN_PLACE\nc = move.is_in_place\n"
    )
    assert questions(file) == 3


@pytest.mark.parametrize("mode", [BlueGreen, InPlace])
def test_each_mode_has_every_step_as_it_is_called(mode: type) -> None:
    steps = {name: step for name, step in vars(ModeSteps).items() if inspect.isfunction(step) and name[0] != "_"}
    assert len(steps) > 5
    for name, step in steps.items():
        assert inspect.signature(getattr(mode, name)) == inspect.signature(step), name
    own = {name for name, found in vars(mode).items() if inspect.isfunction(found)}
    assert own == set(steps), "what only one mode has is no step that differs"


def test_the_plan_tells_the_mode() -> None:
    assert mode_of(in_place_plan()).mode is Mode.IN_PLACE
    assert mode_of(plan_for("shop")).mode is Mode.BLUE_GREEN
