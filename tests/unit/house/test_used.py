"""Code that only tests call is not part of the product: it goes, or this file says why it stays."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.support.house.sources import parsed_file

ROOT = Path(__file__).parents[3]
CORE = ROOT / "plugins" / "kafka_rescale" / "core"
PRODUCT = ("plugins", "spark_jobs", "dags", "examples")
FOR_USERS = CORE / "pipeline"
"""Users write pipelines with this, so its callers are in their code."""

STAYS = {
    "is_allowed_task_movement": "KIP-708: isAllowedTaskMovement, which Kafka Streams' own tests ask.",
    "is_follow_up_needed": "KIP-429: whether another rebalance follows, as its tests ask it.",
    "with_partitions": "KIP-287: by which the properties of linear hashing over a growth are tested.",
}


def mentioned(tree: ast.AST) -> Iterator[str]:
    """Every name that a piece of code uses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name


def defined(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Functions, classes and their public methods."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node
        if isinstance(node, ast.ClassDef):
            yield from (m for m in node.body if isinstance(m, ast.FunctionDef) and not m.name.startswith("_"))


def unused(files: list[Path], product: list[Path]) -> set[str]:
    """Definitions whose names the product mentions only within the definition itself."""
    uses = Counter(name for file in product for name in mentioned(parsed_file(file)))
    nodes = [node for file in files for node in defined(parsed_file(file))]
    return {node.name for node in nodes if uses[node.name] == Counter(mentioned(node))[node.name]}


def test_the_product_uses_all_of_the_core() -> None:
    product = [file for directory in PRODUCT for file in (ROOT / directory).rglob("*.py")]
    files = [file for file in CORE.rglob("*.py") if not file.is_relative_to(FOR_USERS)]
    assert unused(files, product) == set(STAYS)


def test_what_nothing_calls_is_seen(tmp_path: Path) -> None:
    (file := tmp_path / "core.py").write_text("def used(): ...\ndef recursive(): recursive()\nclass Alone: ...\n")
    (user := tmp_path / "user.py").write_text("from core import used\n")
    assert unused([file], [file, user]) == {"recursive", "Alone"}
