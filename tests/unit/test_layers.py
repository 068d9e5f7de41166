"""Imports point inward: what is nearer to the core knows nothing of what is further out."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "plugins" / "kafka_rescale"

ADAPTERS = {"kafka", "lifecycle", "spark"}
OUTER = {"airflow", "cli", "web"}
ALLOWED = {
    "core": {"core"},
    "kafka": {"core", "kafka"},
    "lifecycle": {"core", "lifecycle"},
    "spark": {"core", "kafka", "spark"},
    "operations": {"core", "operations", *ADAPTERS},
    **{part: {"core", "operations", *ADAPTERS, *OUTER} for part in OUTER},
}
NOT_IN_CORE = {
    "airflow",
    "pyspark",
    "confluent_kafka",
    "kafka",
    "yaml",
    "requests",
    "rich",
    "typer",
    "time",
    "random",
}


def modules(directory: Path) -> Iterator[Path]:
    """Every module below a directory."""
    return directory.rglob("*.py")


def imported(file: Path) -> set[str]:
    """Full names of everything that a module imports, at its top or within a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def parts_imported(file: Path) -> set[str]:
    """Parts of this project that a module imports."""
    names = (name.split(".") for name in imported(file))
    return {name[1] for name in names if name[0] == "kafka_rescale" and len(name) > 1}


@pytest.mark.parametrize("part", sorted(ALLOWED))
def test_a_part_imports_only_what_is_further_in(part: str) -> None:
    outward = {
        f"{file.relative_to(PACKAGE)} imports {other}"
        for file in modules(PACKAGE / part)
        for other in parts_imported(file) - ALLOWED[part]
    }
    assert not outward


def test_every_part_has_its_rule() -> None:
    present = {d.name for d in PACKAGE.iterdir() if d.is_dir() and any(modules(d))}
    assert present <= ALLOWED.keys()
    assert {"core", "kafka", "operations"} <= present


def test_the_core_knows_no_client_no_clock_and_no_chance() -> None:
    foreign = {
        f"{file.name} imports {name}"
        for file in modules(PACKAGE / "core")
        for name in imported(file)
        if name.split(".")[0] in NOT_IN_CORE
    }
    assert not foreign


def test_the_check_sees_imports_within_functions(tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text("def f():\n    from kafka_rescale.airflow import retries\n    import confluent_kafka.admin\n")
    assert parts_imported(file) == {"airflow"}
    assert "confluent_kafka.admin" in imported(file)
