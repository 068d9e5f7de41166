"""Rules for every file of the repository."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LINE_LIMIT = 400
WRITTEN_BY_HAND = {".py", ".java", ".sh", ".md", ".yml", ".yaml", ".toml", ".xml", ".html", ".js", ".css", ""}
# Written in two parts. Otherwise this file would be a finding.
LEFT_OVER = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|Users)" + r"/\w|(?<![\w.])/home/(?!airflow\b)" + r"\w+")

# `module.time` is the module itself: what replaces its functions replaces them for every thread and every client.
CLOCK_OF_ALL = re.compile(r"\btime, \"(sleep|monotonic|time)\"|\"time\.(sleep|monotonic|time)\",")


@cache
def repository_files() -> tuple[Path, ...]:
    """Every file that is committed, or that `git add` would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return tuple(path for name in output.split("\0") if name and (path := ROOT / name).is_file())


def texts() -> list[tuple[str, str]]:
    """The name and content of every file that is written by hand."""
    files = [file for file in repository_files() if file.suffix in WRITTEN_BY_HAND]
    return [(str(file.relative_to(ROOT)), file.read_text()) for file in files]


def findings(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def make_help() -> str:
    return subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout


def test_no_file_is_too_long_to_read() -> None:
    long = {name: text.count("\n") for name, text in texts() if text.count("\n") > LINE_LIMIT}
    assert long == {}


def test_nothing_is_left_for_later() -> None:
    assert findings(LEFT_OVER) == []


def test_no_path_of_a_single_machine_is_written_down() -> None:
    assert findings(MACHINE_PATH) == []


def test_no_test_replaces_the_clock_of_every_client() -> None:
    """A client that slept once more called what a test did instead of one wait of the product, twice."""
    assert findings(CLOCK_OF_ALL) == []


@pytest.mark.parametrize("line", ['setattr(sizing.time, "' + 'sleep", f)', 'setattr("time.' + 'monotonic", f)'])
def test_the_search_for_replaced_clocks_finds_one(line: str) -> None:
    assert CLOCK_OF_ALL.search(line)


@pytest.mark.parametrize("path", ["/" + "home/jane/x", "cd /" + "root/x", '"/' + 'Users/jane"'])
def test_the_search_for_machine_paths_finds_one(path: str) -> None:
    assert MACHINE_PATH.search(path)


@pytest.mark.parametrize(
    "generated",
    [
        ".venv/bin/python",
        ".env",
        "var/broker/broker.log",
        "jvm/target/kafka/kafka.jar",
        "plugins/kafka_rescale/__pycache__/plan.cpython-311.pyc",
        ".hypothesis/examples",
    ],
)
def test_generated_files_are_ignored(generated: str) -> None:
    command = ["git", "check-ignore", "--quiet", "--no-index", generated]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def test_no_ignored_file_is_committed() -> None:
    command = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout == ""


def test_make_alone_lists_every_target() -> None:
    listed = set(re.findall(r"^  make ([a-z-]+) +\S", make_help(), re.MULTILINE))
    assert listed == make_targets()
    assert {"setup", "demo", "test", "bench", "lint", "typecheck", "broker", "clean"} <= listed


def test_every_make_target_is_phony() -> None:
    """Otherwise `make demo` would do nothing if a file had that name."""
    phony = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {name for line in phony for name in line.split()} == make_targets()


def environment_in_make(**variables: str) -> dict[str, str]:
    """The environment of a target's commands."""
    command = ["make", "--eval=print-environment:; @env", "print-environment"]
    environment = {**os.environ, **variables}
    shown = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    return dict(line.partition("=")[::2] for line in shown.splitlines())


def test_what_make_starts_may_keep_its_bytecode() -> None:
    """Images forbid bytecode.

    Then each of some hundred short processes would compile everything that it imports.
    """
    shown = environment_in_make(PYTHONDONTWRITEBYTECODE="1")
    assert "PATH" in shown
    assert "PYTHONDONTWRITEBYTECODE" not in shown


def test_what_make_starts_runs_the_spark_of_the_environment_and_one_java() -> None:
    """Otherwise Spark's scripts would run SPARK_HOME's Spark, a notebook's Python, and JAVA_HOME's Java."""
    shown = environment_in_make(
        SPARK_HOME="/opt/spark-3", PYSPARK_DRIVER_PYTHON="jupyter", JAVA_HOME="/opt/java-21"
    )
    assert shown["PATH"].startswith("/opt/java-21/bin:")
    assert shown.keys().isdisjoint({"SPARK_HOME", "PYSPARK_DRIVER_PYTHON"})


def test_the_readme_names_only_commands_that_exist() -> None:
    readme = (ROOT / "README.md").read_text()
    named = set(re.findall(r"(?:^|`|&& )make ([a-z-]+)", readme, re.MULTILINE))
    assert {"demo", "test"} <= named
    assert named <= make_targets()


@pytest.mark.parametrize("script", [".ci/run", *(f"scripts/{file.name}" for file in ROOT.glob("scripts/*.sh"))])
def test_scripts_can_be_executed_from_any_directory(script: str, tmp_path: Path) -> None:
    text = (ROOT / script).read_text()
    assert (ROOT / script).stat().st_mode & 0o111
    assert text.startswith("#!/usr/bin/env bash\n")
    assert subprocess.run(["bash", "-n", ROOT / script], cwd=tmp_path, check=False).returncode == 0


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, by GitHub's rule."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


PAGES = [str(page.relative_to(ROOT)) for pattern in ("*.md", "docs/**/*.md") for page in ROOT.glob(pattern)]


@pytest.mark.parametrize("page", PAGES)
def test_links_to_files_of_the_repository_lead_somewhere(page: str) -> None:
    file = ROOT / page
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]+))?\)", file.read_text())
    local = [(file.parent / link if link else file, anchor) for link, anchor in links if "://" not in link]
    assert [target for target, _ in local if not target.exists()] == []
    assert [(target, anchor) for target, anchor in local if anchor and anchor not in anchors(target)] == []


def test_the_index_of_decisions_names_every_subject_once() -> None:
    index = (ROOT / "docs/decisions.md").read_text()
    subjects = sorted(f"decisions/{file.name}" for file in ROOT.glob("docs/decisions/*.md"))
    assert sorted(re.findall(r"\((decisions/[^)#]+)\)", index)) == subjects
