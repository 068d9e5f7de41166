"""Triggers read in the project's own threads, never in those that all triggers of a triggerer share."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.house.sources import parsed_file

AIRFLOW = Path(__file__).parents[3] / "plugins" / "kafka_rescale" / "airflow"
OWN_THREADS = AIRFLOW / "reading_threads.py"
TO_OTHER_THREADS = {"to_thread", "run_in_executor", "sync_to_async"}


def threads_used(file: Path) -> set[str]:
    """Return which of the ways into a thread a module mentions."""
    nodes = list(ast.walk(parsed_file(file)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    imported = {node.name for node in nodes if isinstance(node, ast.alias)}
    return (names | attributes | imported) & TO_OTHER_THREADS


def test_no_trigger_reads_in_threads_that_it_shares_with_all() -> None:
    """There, a cluster that does not answer would hold up all others, and other teams' triggers."""
    using = {str(file.relative_to(AIRFLOW)): threads_used(file) for file in AIRFLOW.rglob("*.py")}
    own = str(OWN_THREADS.relative_to(AIRFLOW))
    assert {name: ways for name, ways in using.items() if ways} == {own: {"run_in_executor"}}


def test_a_trigger_that_does_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text("async def f():\n    await asyncio.to_thread(read)\n    await sync_to_async(read)()\n")
    assert threads_used(file) == {"to_thread", "sync_to_async"}
    file.with_name("other.py").write_text("from asyncio import to_thread as beside\n")
    assert threads_used(file.with_name("other.py")) == {"to_thread"}
