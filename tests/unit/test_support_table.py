"""The table of what is supported: nothing forgotten, and every test that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

from kafka_rescale.core.changelog_formats import FORMATS, REFUSED

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "support.md").read_text()
ROWS = [line.split("|")[1:-1] for line in TEXT.splitlines() if line.startswith("| `")]


def test_every_store_type_has_a_row() -> None:
    named = {name for row in ROWS for name in re.findall(r"`([\w-]+)`", row[0])}
    assert named == {*FORMATS, *REFUSED}


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", TEXT)
    assert named
    for file, function in named:
        assert f"def {function}" in (ROOT / file).read_text(), (file, function)


def test_every_run_that_is_named_is_a_case() -> None:
    from tests.integration.test_stores_control_run import CASES

    cases = {str(case.id) for case in CASES}
    named = set(re.findall(r"stores\[([\w-]+)\]", TEXT))
    assert named <= cases
    assert named
