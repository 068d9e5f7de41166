"""The tables of the documents, and the tests that the documents name."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
PLACES = {"U": "tests/unit", "I": "tests/integration", "S": "tests/system"}
RUNS = {
    "stores": "I/test_stores_control_run.py::test_a_rescaled_store_equals_its_control_run",
    "flights": "I/test_expansion_control_run.py::test_a_rescaled_application_equals_its_control_run",
}
"""Abbreviations in the tables. The rest of such a name is the case in brackets."""
_FENCED = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)


def rows(text: str, header: str) -> list[list[str]]:
    """Return the cells of the table whose header line begins with ``header``."""
    _, _, rest = text.partition(f"\n| {header}")
    lines = rest.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def named_tests(text: str) -> set[str]:
    """Return everything in backticks that names a test, as ``file[::function[case]]``."""
    found = set()
    # Leave out fences: their backticks would pair with those of the names behind them.
    for name in re.findall(r"`([^`]+)`", _FENCED.sub("", text)):
        place, _, rest = name.partition("/")
        if rest and place in PLACES:
            found.add(in_its_folder(name))
        elif match := re.fullmatch(r"(\w+)(\[.+\])", name):
            found |= {in_its_folder(RUNS[match[1]]) + match[2]} if match[1] in RUNS else set()
        elif name.startswith("tests/") and ".py" in name:
            found.add(name)
    return found


def in_its_folder(name: str) -> str:
    """Return a test as pytest names it. Pages write only ``U/test_file.py``, because file names are unique."""
    place, _, rest = name.partition("/")
    file, colons, node = rest.partition("::")
    return "".join((_files(PLACES[place]).get(file, f"{PLACES[place]}/{file}"), colons, node))


@cache
def _files(place: str) -> dict[str, str]:
    """Return the files of a folder and its folders, by their names."""
    return {path.name: str(path.relative_to(ROOT)) for path in (ROOT / place).rglob("*.py")}


def missing(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the names that name no test. A name without a function or a case stands for all of its tests.

    :param known: tests as pytest names them.
    """
    existing = {short for test in known for short in _shorter(test)}
    return sorted(set(names) - existing)


def _shorter(test: str) -> Iterator[str]:
    """Yield the names that a page may use for a test: its file, class or function, or function with the case."""
    file, _, node = test.partition("::")
    place, bracket, case = node.partition("[")
    owner, _, function = place.rpartition("::")
    yield from (file, f"{file}::{owner}", f"{file}::{function}", f"{file}::{function}{bracket}{case}")


def collected(names: Iterable[str]) -> list[str]:
    """Return every test of the named files that exist, slow tests too, as pytest names them."""
    files = sorted({file for name in names if (ROOT / (file := name.partition("::")[0])).is_file()})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return [line for line in result.stdout.splitlines() if "::" in line]
