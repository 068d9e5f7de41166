"""The warm-up gate itself, in one JVM and without a broker."""

from __future__ import annotations

import subprocess
from pathlib import Path

from testbed.jars import ensure_gate_jar, ensure_jars, require_java

TEST = Path(__file__).resolve().parents[2] / "java" / "WarmUpGateTest.java"
PASSED = [
    "inputs are seen with the partitions that they will have",
    "the assignor of Kafka Streams decides",
    "a record is refused",
    "the streams protocol is refused",
    "a second application is refused",
    "without its group no consumer is made",
    "local state is deleted",
    "local state behind a link is deleted",
    "local state in use is left alone",
    "local state is kept if the gate's group says so",
]


def test_the_gate_passes_its_own_test(tmp_path: Path) -> None:
    class_path = f"{ensure_gate_jar()}:{ensure_jars('kafka')}/*"
    command = [require_java(), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", class_path, str(TEST)]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == PASSED
