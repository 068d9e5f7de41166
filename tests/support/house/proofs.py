"""What kind of proof a test is. It follows from what the test, its fixtures and its helpers start."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from tests.support.house.documents import ROOT, named_tests
from tests.support.house.sources import parsed_file


def _names_tests_in_a_table(page: Path) -> bool:
    return any(line.startswith("|") and named_tests(line) for line in page.read_text().splitlines())


PAGES = sorted(filter(_names_tests_in_a_table, (ROOT / "docs").glob("*.md")))
"""The pages about the product. Pages in folders, such as the decisions, describe one day and stay as they are."""
COLUMN = "proof"


class Proof(StrEnum):
    """Kinds of proof, the weakest first.

    UNIT: functions and classes. Stand-ins may replace everything else.
    STREAMS: Kafka Streams' own classes in a JVM, without a broker.
    BROKER: a real broker, and the product's code in the process of the test.
    LIVE: a broker, and beside it a Kafka Streams application or ``spark-submit`` as a process of its own.
    AIRFLOW: a real Airflow.
    """

    UNIT = "unit"
    STREAMS = "Kafka Streams"
    BROKER = "broker"
    LIVE = "live"
    AIRFLOW = "Airflow"


AIRFLOW, BROKER, JVM, SPARK = "airflow", "broker", "jvm", "spark"
MARKS = {
    ("testbed.airflow_standalone", "AirflowStandalone"): {AIRFLOW},
    ("testbed.broker", "EmbeddedBroker"): {BROKER},
    ("testbed.cluster", "EmbeddedCluster"): {BROKER},
    ("testbed.cluster", "brokers_on"): {BROKER},
    ("testbed.jars", "java_command"): {JVM},
    ("testbed.jars", "require_java"): {JVM},
    ("testbed.flights_stack", "FlightsStack"): {JVM, BROKER},
    ("testbed.expansion", "Expansion"): {SPARK},
    ("tests.integration.spark_job_helpers", "submitted"): {SPARK},
    ("tests.integration.spark_job_helpers", "submit_verify"): {SPARK},
    ("pyspark.sql", "SparkSession"): {SPARK},
}
"""The names at which the search ends, and what each of them starts."""
OWN = ("tests", "testbed")
COMPILERS = "testbed.jars"
"""The search leaves this module out: it compiles what others run."""
Definition = tuple[str, str]
"""A module and a name in it."""


@dataclass(frozen=True)
class Module:
    """What a file defines and imports.

    :param imports: where each imported name comes from.
    """

    definitions: dict[str, ast.AST]
    imports: dict[str, Definition]
    autouse: frozenset[str]


def proofs_of(text: str) -> list[Proof]:
    """Return the kinds of the tests that a text names, the weakest first."""
    found = {proof for name in named_tests(text) for proof in kinds(name)}
    return [proof for proof in Proof if proof in found]


def kinds(test: str) -> set[Proof]:
    """Return the kind of a test, or the kinds of all tests in a file.

    :param test: ``file[::function[case]]``.
    :raises LookupError: there is no such test.
    """
    file, _, node = test.partition("::")
    module, function = file.removesuffix(".py").replace("/", "."), node.partition("[")[0]
    chosen = _starts(module, function)
    if not chosen:
        raise LookupError(f"found a row that names {test}; expected a test that exists: correct the name")
    return {_kind(reached((module, name))) for name in chosen}


def _starts(module: str, function: str) -> list[str]:
    """Return the definitions where the search for a test begins. For a method, this is its class."""
    known = parsed(module).definitions
    if function in known:
        return [function]
    tests = [name for name in known if name.lower().startswith("test")]
    # The test case of a state machine has no function of its own.
    if function in {"", "runTest"}:
        return tests
    return [name for name in tests if function in _methods(known[name])]


def _methods(node: ast.AST) -> set[str]:
    body = node.body if isinstance(node, ast.ClassDef) else ()
    return {each.name for each in body if isinstance(each, ast.FunctionDef)}


def _kind(marks: Collection[str]) -> Proof:
    if AIRFLOW in marks:
        return Proof.AIRFLOW
    if BROKER in marks:
        return Proof.LIVE if {JVM, SPARK} & set(marks) else Proof.BROKER
    return Proof.STREAMS if JVM in marks else Proof.UNIT


@cache
def reached(start: Definition) -> frozenset[str]:
    """Return the marks of everything that a test uses, including its fixtures and their helpers."""
    marks: set[str] = set()
    seen, left = {start}, [start, *((start[0], name) for name in parsed(start[0]).autouse)]
    while left:
        module, name = left.pop()
        for target in _used(module, name):
            if target in MARKS:
                marks |= MARKS[target]
            elif target not in seen and target[0] != COMPILERS and target[0].partition(".")[0] in OWN:
                seen.add(target)
                left.append(target)
    return frozenset(marks)


@cache
def _used(module: str, name: str) -> frozenset[Definition]:
    return frozenset(_uses(module, name))


def _uses(module: str, name: str) -> Iterator[Definition]:
    node = parsed(module).definitions.get(name)
    for mention in set(_mentions(node)) if node is not None else ():
        for place in (module, *_conftests(module)):
            here = parsed(place)
            if mention in here.definitions:
                yield place, mention
                break
            if mention in here.imports:
                yield here.imports[mention]
                break


def _mentions(node: ast.AST) -> Iterator[str]:
    """Yield the names in a piece of code, also of fixtures.

    Annotations are left out, because they start nothing.
    """
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        yield node.value  # usefixtures, getfixturevalue
    for field, value in ast.iter_fields(node):
        if field not in {"annotation", "returns"}:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _mentions(child)


@cache
def _conftests(module: str) -> tuple[str, ...]:
    parts = module.split(".")[:-1]
    places = [".".join([*parts[:end], "conftest"]) for end in range(len(parts), 0, -1)]
    return tuple(place for place in places if _file(place).is_file())


@cache
def parsed(module: str) -> Module:
    """Return what a module of the tests defines and imports."""
    file = _file(module)
    if not file.is_file():
        return Module({}, {}, frozenset())
    tree = parsed_file(file)
    definitions: dict[str, ast.AST] = {}
    for node in tree.body:
        for name in _defined(node):
            definitions[name] = node
    imports = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    autouse = {name for name, node in definitions.items() if _is_autouse(node)}
    return Module(definitions, imports, frozenset(autouse))


def _defined(node: ast.stmt) -> Iterable[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = (
        node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    )
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _is_autouse(node: ast.AST) -> bool:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(
        keyword.arg == "autouse"
        for decorator in decorators
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
    )


def _file(module: str) -> Path:
    path = ROOT / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def with_proofs(page: str) -> str:
    """Return the page with the kinds of proof in the last cell of every table row that names tests."""
    lines = page.split("\n")
    for begin, end in _tables(lines):
        cells = [proofs_of(line) for line in lines[begin + 2 : end]]
        if not any(cells):
            continue
        has_column = _last_cell(lines[begin]) == COLUMN
        new = [COLUMN, "---", *(", ".join(kinds) or "–" for kinds in cells)]
        for number, cell in zip(range(begin, end), new, strict=True):
            lines[number] = _with_last_cell(lines[number], cell, replaces=has_column)
    return "\n".join(lines)


def _tables(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the number of each table's first line, and of the line after the table."""
    begin = None
    for number, line in enumerate([*lines, ""]):
        if line.startswith("|") and begin is None:
            begin = number
        elif not line.startswith("|") and begin is not None:
            yield begin, number
            begin = None


def _last_cell(row: str) -> str:
    return row.rstrip().removesuffix("|").rpartition("|")[2].strip()


def _with_last_cell(row: str, cell: str, *, replaces: bool) -> str:
    row = row.rstrip()
    if replaces:
        row = row.removesuffix("|").rpartition("|")[0] + "|"
    return f"{row}---|" if cell == "---" else f"{row} {cell} |"
