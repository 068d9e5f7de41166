"""The warm-up gate itself, in one JVM and without a broker."""

from __future__ import annotations

from pathlib import Path

from tests.support.jvm_tests import run_gate_test

TEST = Path(__file__).resolve().parents[2] / "java" / "WarmUpGateTest.java"
PASSED = [
    "inputs are seen with the partitions that they will have",
    "the assignor of Kafka Streams decides",
    "a record is refused",
    "the streams protocol is refused",
    "a second application is refused",
    "a program that has not configured its gate is told so",
    "without its group no consumer is made",
    "local state is deleted",
    "local state behind a link is deleted",
    "local state in use is left alone",
    "local state is kept if the gate's group says so",
]


def test_the_gate_passes_its_own_test(tmp_path: Path) -> None:
    assert run_gate_test(TEST, str(tmp_path)) == PASSED
