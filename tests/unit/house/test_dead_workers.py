"""A test whose worker dies is run once more if reruns are asked for, and fails if its worker dies again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CRASHING = """
import faulthandler
from pathlib import Path

def test_before(): pass

def test_crash():
    deaths = Path("deaths")
    died = len(deaths.read_text()) if deaths.exists() else 0
    if died < {times}:
        deaths.write_text("x" * (died + 1))
        faulthandler._sigsegv()

def test_behind(): pass
"""


def run(directory: Path, *, times: int) -> str:
    """Run tests, one of which crashes so many times, in two workers; return what pytest prints."""
    (directory / "test_crashing.py").write_text(CRASHING.format(times=times))
    (directory / "test_other.py").write_text("def test_other(): pass\n")
    (directory / "conftest.py").write_text(
        "from tests.support.house.dead_workers import DeadWorkers\n"
        "def pytest_configure(config):\n"
        "    config.pluginmanager.register(DeadWorkers(1))\n"
    )
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-pxdist", "-n2", "--dist=loadfile", "-pno:cacheprovider", "."],
        cwd=directory,
        env={
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
        },
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return f"{found.stdout}\nends with {found.returncode}"


@pytest.mark.parametrize(("times", "expected"), [(1, (0, "4 passed, 1 rerun")), (2, (1, "1 failed, .*1 rerun"))])
def test_only_the_first_death_in_a_test_is_a_rerun(tmp_path: Path, times: int, expected: tuple[int, str]) -> None:
    printed = run(tmp_path, times=times)
    status, counts = expected
    assert re.search(rf"=+ {counts} in ", printed), printed
    assert printed.endswith(f"ends with {status}"), printed
