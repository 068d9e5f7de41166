"""The tables of what is supported forget nothing, and every test that they name exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from kafka_rescale.core.application.streams import Mode
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.formats.changelog_formats import FORMATS, REFUSED

from tests.support.house.documents import ROOT, collected, missing, named_tests, rows

PAGES = sorted((ROOT / "docs").glob("*.md"))
"""The pages about the product. Pages in folders, such as the decisions, describe one day."""
TEXT = (ROOT / "docs" / "support.md").read_text()
ROWS = rows(TEXT, "store type | guarantee | protocol")
AXES = (
    (*FORMATS, *REFUSED),
    ("at_least_once", "exactly_once_v2"),
    ("classic", "streams"),
    tuple(InputPolicy),
    ("blue_green",),
)
VERDICTS = {"run", "not run", "left alone", "refused"}


def values(cell: str, axis: tuple[str, ...]) -> set[str]:
    """The values that a cell stands for."""
    return set(axis) if cell == "any" else set(re.findall(r"`([\w-]+)`", cell))


def fitting(combination: tuple[str, ...]) -> Iterator[int]:
    """The numbers of the rows that a combination fits. The row that decides comes first."""
    for number, row in enumerate(ROWS):
        if all(value in values(cell, axis) for value, cell, axis in zip(combination, row, AXES, strict=False)):
            yield number


def test_every_combination_has_a_row_and_every_row_decides_on_one() -> None:
    deciding = {next(fitting(combination), None) for combination in product(*AXES)}
    assert deciding == set(range(len(ROWS)))


def test_the_modes_are_those_of_an_application_file() -> None:
    assert {mode for row in ROWS for mode in values(row[4], AXES[4])} == {Mode.BLUE_GREEN.value}
    assert all(f"`{mode}`" in TEXT for mode in Mode)
    in_place = {name for row in rows(TEXT, "store type, in place") for name in re.findall(r"`([\w-]+)`", row[0])}
    assert in_place == {*FORMATS, "source-table"}


def test_a_row_speaks_of_what_there_is() -> None:
    for row in ROWS:
        assert len(row) == len(AXES) + 3, row
        for cell, axis in zip(row, AXES, strict=False):
            assert values(cell, axis), row
            assert values(cell, axis) <= set(axis), row
        assert row[5] in VERDICTS, row


def test_what_was_run_names_the_run() -> None:
    for row in ROWS:
        if row[5] == "run":
            cases = named_tests(row[6])
            assert cases, row
            assert all("::" in case for case in cases), row


def test_every_refusal_names_the_test_of_its_message_and_one_of_what_would_come_of_it() -> None:
    refusals = rows(TEXT, "what | why | message")
    assert len(refusals) > 15
    for what, _, message, wrong, _ in refusals:
        assert named_tests(message), what
        assert named_tests(wrong) or wrong in {"the same test", "it has no changelog: nothing to move"}, what


def test_every_test_that_is_named_exists() -> None:
    named = {name for page in PAGES for name in named_tests(page.read_text())}
    assert len(named) > 60
    assert missing(named, collected(named)) == []


def test_a_test_that_does_not_exist_is_found() -> None:
    known = ["tests/unit/test_a.py::test_b", "tests/unit/test_a.py::TestC::test_d[4::to[8]]"]
    there = ["tests/unit/test_a.py", *(f"tests/unit/test_a.py::{each}" for each in ("test_b", "TestC", "test_d"))]
    assert missing([*there, "tests/unit/test_a.py::test_d[4::to[8]]"], known) == []
    gone = ["tests/unit/test_a.py::test_c", "tests/unit/test_a.py::test_d[5]", "tests/unit/test_z.py"]
    assert missing([*there, *gone], known) == gone


def test_what_stands_behind_a_fence_is_read() -> None:
    text = "\n```yaml\nid: `x`, `y\n```\n\n| it grows | `U/test_a.py::test_b` |\n"
    assert named_tests(text) == {"tests/unit/test_a.py::test_b"}
