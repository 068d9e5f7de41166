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


@pytest.mark.parametrize(
    ("position", "begin", "left", "whole"),
    [(NO_POSITION, 98, 2, 2), (99, 98, 1, 2), (90, 98, 2, 2), (NO_POSITION, 100, 0, 0), (99, None, 1, None)],
    ids=["not begun", "begun", "overtaken by retention", "emptied by retention", "not known"],
)
def test_what_retention_has_deleted_is_neither_left_nor_copied(
    position: int, begin: int | None, left: int, whole: int | None
) -> None:
    progress = PartitionProgress(topic="t", partition=0, position=position, end=100, begin=begin)
    assert (progress.left, progress.whole, progress.is_left_known) == (left, whole, True)
    assert progress.lag == (NO_POSITION if position < 0 else 100 - position), "what gates hold"


def test_a_record_of_an_earlier_version_does_not_know_where_its_copy_begins() -> None:
    old = PartitionProgress.model_validate({"topic": "t", "partition": 0, "position": NO_POSITION, "end": 100})
    assert (old.left, old.whole, old.is_left_known) == (100, None, False)
    known = old.model_copy(update={"begin": 0})
    assert PartitionProgress.model_validate_json(known.model_dump_json()) == known


@pytest.mark.parametrize("name", ["LogRange", "NO_POSITION"])
def test_an_idea_has_one_definition(name: str) -> None:
    defined = []
    for file in PACKAGE.rglob("*.py"):
        for node in parsed_file(file).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if getattr(node, "name", "") == name or any(getattr(t, "id", "") == name for t in targets):
                defined.append(file.relative_to(PACKAGE).as_posix())
    assert len(defined) == 1, defined
