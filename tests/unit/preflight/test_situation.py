"""The situation of preflight is made once and complete, so a check never finds a part that was not read yet."""

from __future__ import annotations

import ast
from dataclasses import MISSING, fields
from pathlib import Path

import pytest
from kafka_rescale.core.preflight.described import Described, Target
from kafka_rescale.core.preflight.situation import Situation

from tests.support.house.sources import parsed_file

PACKAGE = Path(__file__).parents[3] / "plugins" / "kafka_rescale"


@pytest.mark.parametrize("value", [Target, Described, Situation])
def test_nothing_of_it_has_a_default(value: type) -> None:
    assert [f.name for f in fields(value) if (f.default, f.default_factory) != (MISSING, MISSING)] == []


def made(tree: ast.AST) -> list[str]:
    """The calls that make a situation, or change one into another."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    names = {"Situation", "replace"}
    return [
        ast.unparse(call)
        for call in calls
        if isinstance(call.func, ast.Name)
        and call.func.id in names
        and (call.func.id == "Situation" or ast.unparse(call.args[0]) == "situation")
    ]


def test_it_is_made_in_one_place() -> None:
    files = {f.relative_to(PACKAGE).as_posix(): made(parsed_file(f)) for f in PACKAGE.rglob("*.py")}
    assert {name: len(calls) for name, calls in files.items() if calls} == {"operations/preflight/preflight.py": 1}


def test_a_second_way_is_seen() -> None:
    assert made(ast.parse("a = replace(situation, now_ms=1)\nb = Situation()\nc = replace(cluster)")) == [
        "replace(situation, now_ms=1)",
        "Situation()",
    ]
