"""What a machine lacks is named at once, and what only tests need only where tests are to be run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_machine.sh"
NEEDED = ("bash", "env", "sed", "head", "id", "java", "javac", "mvn")
CHROMIUM = "chromium"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A directory with the programs that everything needs, and no browser."""
    for name in NEEDED:
        found = shutil.which(name)
        assert found, name
        (tmp_path / name).symlink_to(found)
    return tmp_path


def check(machine: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(machine), "PYTHON": getattr(sys, "_base_executable", sys.executable)}
    command = [str(machine / "bash"), str(SCRIPT), *arguments]
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
