"""How code and messages are worded, as far as a program can tell (CONTRIBUTING.md, "How to write")."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.client.waiting import wait_until

from tests.support.house.documents import ROOT

PRODUCT = [*(ROOT / "plugins" / "kafka_rescale").rglob("*.py"), *(ROOT / "spark_jobs").glob("*.py")]


def test_a_wait_that_is_in_vain_says_how_long_and_for_what() -> None:
    with pytest.raises(Outage) as error:
        wait_until(lambda: False, seconds=0, what="shop to run again", remedy="START IT BY HAND NOW.")
    assert str(error.value) == "Timed out after 0 s waiting for shop to run again. START IT BY HAND NOW."


def told_otherwise(tree: ast.AST) -> Iterator[str]:
    """Yield what an error says to have found "after … s": a wait that is not told as one that timed out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "found" and isinstance(node.value, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.value.values
            )
            if "after … s" in text:
                yield text


def test_every_wait_is_told_in_the_same_words() -> None:
    errors = ROOT / "plugins" / "kafka_rescale" / "core" / "errors.py"
    found = {(file.name, text) for file in PRODUCT if file != errors for text in told_otherwise(parsed(file))}
    assert found == set()


def test_a_wait_in_other_words_is_found() -> None:
    (text,) = told_otherwise(
        ast.parse('Outage("x", found=f"no, after {seconds:.0f} s", expected="yes", remedy="")')
    )
    assert text == "no, after … s"


def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())
