"""Imports point inward: what is nearer to the core knows nothing of what is further out."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.house.sources import parsed_file

ROOT = Path(__file__).parents[3]
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
    """The full names of everything that a module imports, at its top or within a function."""
    found: set[str] = set()
    for node in ast.walk(parsed_file(file)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def parts_imported(file: Path) -> set[str]:
    """The parts of this project that a module imports."""
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


ORDER = (
    ("errors", "installation", "values", "cluster", "roles", "callables", "job_requests"),
    ("topology", "assignment"),
    ("partitioning",),
    ("formats",),
    ("application", "pipeline"),
    ("plan",),
    ("control",),
    ("acls", "expansion", "snapshots", "verify"),
    ("preflight", "processing"),
    ("autoscaling",),
    ("page",),
)
"""The folders of the core. Each uses only folders before it, also within its row."""

PLACES = [name for row in ORDER for name in row]
EXPANSION = {"plan", "preflight", "expansion", "cutover", "modes", "verify", "copy"}
RUNTIME = {"pipeline", "processing"}
MOST_FILES = 32
MOST_FILES_OF_TESTS = 40
MOST_ENTRIES_OF_THE_CORE = 24


def rooms_imported(file: Path) -> set[tuple[str, str]]:
    """The layer and folder (or the file, without a folder) of everything in this project that a module imports."""
    names = (name.split(".") for name in imported(file))
    return {(name[1], name[2]) for name in names if name[0] == "kafka_rescale" and len(name) > 2}


def out_of_order(place: str, file: Path) -> set[str]:
    """The places of the core that a module of another place imports but must not know."""
    others = {room for layer, room in rooms_imported(file) if layer == "core"} - {place}
    return {other for other in others if PLACES.index(other) > PLACES.index(place)}


@pytest.mark.parametrize("place", PLACES)
def test_a_folder_of_the_core_uses_only_what_stands_before_it(place: str) -> None:
    here = PACKAGE / "core" / place
    files = modules(here) if here.is_dir() else [here.with_suffix(".py")]
    backward = {
        f"{file.relative_to(PACKAGE)} imports {other}" for file in files for other in out_of_order(place, file)
    }
    assert not backward


def test_every_place_of_the_core_has_its_number() -> None:
    entries = {
        entry.stem for entry in (PACKAGE / "core").iterdir() if entry.suffix == ".py" or any(modules(entry))
    }
    assert entries - {"__init__"} == set(PLACES)
    assert len(entries) <= MOST_ENTRIES_OF_THE_CORE


def test_an_import_against_the_order_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text("from kafka_rescale.core.plan.plan import Plan\nfrom kafka_rescale.core.page import page\n")
    assert out_of_order("control", file) == {"page"}
    assert out_of_order("topology", file) == {"page", "plan"}


def beyond_the_wall(room: str, file: Path) -> set[str]:
    """The folders of the other side, in any layer, that a module of one side imports."""
    other = RUNTIME if room in EXPANSION else EXPANSION if room in RUNTIME else set()
    return {f"{layer}.{name}" for layer, name in rooms_imported(file) if name in other}


def test_expansion_and_pipeline_runtime_do_not_know_each_other() -> None:
    files = [file for file in modules(PACKAGE) if len(file.relative_to(PACKAGE).parts) > 2]
    through = {
        f"{file.relative_to(PACKAGE)} imports {other}"
        for file in files
        for other in beyond_the_wall(file.relative_to(PACKAGE).parts[1], file)
    }
    assert not through


def test_an_import_through_the_wall_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(
        "from kafka_rescale.kafka.copy.loop import CopyWorker\nimport kafka_rescale.core.pipeline.task\n"
    )
    assert beyond_the_wall("processing", file) == {"kafka.copy"}
    assert beyond_the_wall("preflight", file) == {"core.pipeline"}
    assert beyond_the_wall("control", file) == set()


def overfull(directory: Path, most: int = MOST_FILES) -> dict[str, int]:
    """Folders with more modules than a reader can survey, and their number of modules."""
    folders = [directory, *(entry for entry in directory.rglob("*") if entry.is_dir())]
    counts = {str(folder.relative_to(directory)): len(list(folder.glob("*.py"))) for folder in folders}
    return {folder: count for folder, count in counts.items() if count > most}


@pytest.mark.parametrize("directory", [PACKAGE, ROOT / "testbed"], ids=lambda directory: directory.name)
def test_no_folder_becomes_a_heap_again(directory: Path) -> None:
    assert overfull(directory) == {}


def test_a_heap_is_seen(tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    for number in range(MOST_FILES + 1):
        (room / f"file_{number}.py").touch()
    assert overfull(tmp_path) == {"room": MOST_FILES + 1}


def test_no_folder_of_tests_becomes_a_heap() -> None:
    assert overfull(ROOT / "tests", most=MOST_FILES_OF_TESTS) == {}


def test_names_of_test_files_are_unique_within_a_suite() -> None:
    """Pages name a test ``U/test_file.py``, wherever its folder is."""
    for suite in ("unit", "integration", "system"):
        names = Counter(file.name for file in (ROOT / "tests" / suite).rglob("test_*.py"))
        assert [name for name, times in names.items() if times > 1] == []


def test_every_folder_asks_its_question() -> None:
    folders = {file.parent for file in modules(PACKAGE)} - {PACKAGE}
    silent = [
        folder for folder in folders if not ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    ]
    assert not silent


def test_the_product_does_not_know_the_test_bed() -> None:
    knowing = [
        file for file in modules(PACKAGE) if any(name.split(".")[0] == "testbed" for name in imported(file))
    ]
    assert not knowing
