"""A message of the client library has the length of its value, so a record without a value is false."""

from __future__ import annotations

import ast
from pathlib import Path

from confluent_kafka import Message

from testbed.expansion import ROOT

FOLDERS = ("plugins", "testbed", "benchmarks", "scripts", "examples")


def truths(source: str) -> list[int]:
    """Return the lines where the answer of ``poll`` itself decides, and not whether it is None."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.While | ast.If | ast.IfExp)
        for test in [node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test]
        if isinstance(test, ast.NamedExpr)
        and isinstance(test.value, ast.Call)
        and isinstance(test.value.func, ast.Attribute)
        and test.value.func.attr == "poll"
    ]


def test_no_one_takes_a_deletion_for_no_message() -> None:
    files: list[Path] = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 500
    assert {str(file): lines for file in files if (lines := truths(file.read_text()))} == {}


def test_such_a_line_is_found() -> None:
    assert hasattr(Message, "__len__")
    assert truths("while m := c.poll(0):\n    pass\nif not (m := c.poll(0)):\n    pass\n") == [1, 3]
    assert truths("while (m := c.poll(0)) is not None:\n    pass\n") == []
