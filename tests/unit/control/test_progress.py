"""The progress of a copy: its lag, and how much of its source is left."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from kafka_rescale.core.control.progress import NO_POSITION, PartitionProgress

from tests.support.house.sources import parsed_file

PACKAGE = Path(__file__).parents[3] / "plugins" / "kafka_rescale"


@pytest.mark.parametrize(
    ("position", "end", "lag", "left"),
    [(3, 10, 7, 7), (10, 10, 0, 0), (12, 10, 0, 0), (0, 10, 10, 10), (NO_POSITION, 10, NO_POSITION, 10)],
    ids=["behind", "at the end", "read later than the end", "at the beginning", "not begun"],
)
def test_lag_and_what_is_left(position: int, end: int, lag: int, left: int) -> None:
    progress = PartitionProgress(topic="t", partition=0, position=position, end=end)
    assert (progress.lag, progress.left) == (lag, left)
    assert set(progress.model_dump()) == {"topic", "partition", "position", "end", "records", "bytes"}


@pytest.mark.parametrize("name", ["LogRange", "NO_POSITION"])
def test_an_idea_has_one_definition(name: str) -> None:
    defined = []
    for file in PACKAGE.rglob("*.py"):
        for node in parsed_file(file).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if getattr(node, "name", "") == name or any(getattr(t, "id", "") == name for t in targets):
                defined.append(file.relative_to(PACKAGE).as_posix())
    assert len(defined) == 1, defined
