"""The suppliers of the gate's jar that wrap another supplier, in one JVM and without a broker."""

from __future__ import annotations

import subprocess
from pathlib import Path

from testbed.jars import ensure_gate_jar, ensure_jars, require_java

TEST = Path(__file__).resolve().parents[2] / "java" / "HeldSettingsTest.java"
PASSED = [
    "proper settings are taken",
    "a wait that is no number of seconds is refused",
    "a class that is no other supplier is refused",
    "a second application is refused",
    "a program that has not configured its gate is told so",
]


def test_settings_that_cannot_be_used_are_refused_with_a_remedy() -> None:
    class_path = f"{ensure_gate_jar()}:{ensure_jars('kafka')}/*"
    command = [require_java(), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", class_path, str(TEST)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == PASSED
