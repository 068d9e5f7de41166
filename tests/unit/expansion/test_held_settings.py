"""The suppliers of the gate's jar that wrap another supplier, in one JVM and without a broker."""

from __future__ import annotations

from pathlib import Path

from tests.support.jvm_tests import run_gate_test

TEST = Path(__file__).resolve().parents[2] / "java" / "HeldSettingsTest.java"
PASSED = [
    "proper settings are taken",
    "a wait that is no number of seconds is refused",
    "a class that is no other supplier is refused",
    "a second application is refused",
    "a program that has not configured its gate is told so",
]


def test_settings_that_cannot_be_used_are_refused_with_a_remedy() -> None:
    assert run_gate_test(TEST) == PASSED
