"""Everything that a machine lacks is named at once. What only tests need is named only if tests shall run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "check_machine.sh"
NEEDED = ("bash", "env", "sed", "head", "id", "uname", "dirname", "java", "javac", "mvn")
CHROMIUM = "chromium"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A directory with the programs that everything needs, and no browser."""
    for name in NEEDED:
        found = shutil.which(name)
        assert found, name
        (tmp_path / name).symlink_to(found)
    return tmp_path


def check(
    machine: Path, *arguments: str, script: Path = SCRIPT, **variables: str
) -> subprocess.CompletedProcess[str]:
    python = getattr(sys, "_base_executable", sys.executable)
    environment = {"PATH": str(machine), "PYTHON": python, **variables}
    command = [str(machine / "bash"), str(script), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_machine_without_a_browser_runs_everything_but_the_tests(machine: Path) -> None:
    assert check(machine).returncode == 0
    refused = check(machine, "--tests")
    assert refused.returncode == 1
    assert "  - Chromium" in refused.stderr
    assert "apt-get install -y chromium" in refused.stderr
    assert check(machine, "--packages").stdout.split() == [CHROMIUM]


def test_with_a_browser_nothing_is_missing(machine: Path) -> None:
    (machine / CHROMIUM).symlink_to("/bin/true")
    assert check(machine, "--tests").returncode == 0
    assert check(machine, "--packages").stdout.split() == []


@pytest.mark.parametrize("script", ["check_machine.sh", "setup.sh"])
def test_another_system_than_linux_is_refused_before_anything_else(machine: Path, script: str) -> None:
    (machine / "uname").unlink()
    (machine / "uname").write_text(f"#!{machine / 'bash'}\necho Darwin\n")
    (machine / "uname").chmod(0o755)
    refused = check(machine, script=SCRIPT.parent / script)
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr == (
        "Kafka Rescale can't be set up here: found Darwin; expected Linux.\n"
        "Use WSL 2, a container (docs/docker-compose.md) or a virtual machine.\n"
    )


def java_home(directory: Path, version: str) -> str:
    """Make a Java that reports this version, and return its home."""
    for name in ("java", "javac"):
        program = directory / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        program.chmod(0o755)
    return str(directory)


def test_the_java_of_java_home_counts_as_maven_and_spark_run_it(machine: Path, tmp_path: Path) -> None:
    old, new = java_home(tmp_path / "old", "11.0.2"), java_home(tmp_path / "new", "21.0.1")
    refused = check(machine, JAVA_HOME=old)
    assert refused.returncode == 1
    assert f"Java 17 or newer, with its compiler (found: 11 in JAVA_HOME, {old})" in refused.stderr
    assert check(machine, JAVA_HOME=new).returncode == 0


@pytest.mark.parametrize("arguments", [[], ["--system"]])
def test_a_java_home_without_java_is_named(machine: Path, tmp_path: Path, arguments: list[str]) -> None:
    refused = check(machine, *arguments, JAVA_HOME=str(tmp_path / "nowhere"))
    assert refused.returncode == 1
    assert f"JAVA_HOME is {tmp_path / 'nowhere'}, where there is no bin/java" in refused.stderr
