"""A watchdog kills the process that it watches, and never another process that got the same id."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from testbed.processes import end_with_parent, is_running, started_at


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def parent_ends(watchdog: subprocess.Popen[bytes]) -> None:
    """Do what the end of this process does to the watchdog: nothing holds its pipe open any more."""
    assert watchdog.stdin is not None
    watchdog.stdin.close()
    watchdog.wait(20)


def test_the_process_is_killed_when_its_parent_has_ended(child: subprocess.Popen[bytes]) -> None:
    parent_ends(end_with_parent(child.pid))
    assert child.wait(20) == -9


def test_another_process_with_the_same_id_is_left_alone(child: subprocess.Popen[bytes]) -> None:
    parent_ends(end_with_parent(child.pid, started=str(int(started_at(child.pid)) - 1)))
    assert is_running(child.pid)


def test_a_process_that_has_ended_is_nobody(child: subprocess.Popen[bytes]) -> None:
    watchdog = end_with_parent(child.pid)
    child.kill()
    child.wait(20)
    parent_ends(watchdog)
    assert watchdog.returncode == 1
