"""A producer of the gate's jar begins no transaction after it has aborted one."""

from __future__ import annotations

import pytest

from testbed.jars import JVM_DIRECTORY
from tests.support.jvm_tests import run_gate_test

pytestmark = pytest.mark.integration


def test_a_producer_is_fenced_after_it_has_aborted() -> None:
    assert run_gate_test(JVM_DIRECTORY / "tests" / "gate" / "FencedProducers.java", seconds=120) == [
        "committed: begins",
        "aborted: fenced, thread-1 has aborted a transaction that its tasks share",
        "at least once: true",
        "error: IllegalStateException",
    ]
