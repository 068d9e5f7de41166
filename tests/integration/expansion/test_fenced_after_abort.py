"""A producer of the gate's jar begins no transaction after it has aborted one."""

from __future__ import annotations

import subprocess

import pytest

from testbed.jars import JVM_DIRECTORY, ensure_gate_jar, jars_directory, require_java

pytestmark = pytest.mark.integration


def test_a_producer_is_fenced_after_it_has_aborted() -> None:
    classes = f"{ensure_gate_jar()}:{jars_directory('kafka')}/*"
    source = JVM_DIRECTORY / "tests" / "gate" / "FencedProducers.java"
    command = [require_java(), "-Xmx128m", "-cp", classes, str(source)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()
    assert told == [
        "committed: begins",
        "aborted: fenced, thread-1 has aborted a transaction that its tasks share",
        "at least once: true",
        "error: IllegalStateException",
    ]
