"""Green restores its stores before the pause. Behind the warm-up gate it does nothing else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.operations.cutover import copies
from kafka_rescale.operations.cutover.cutover import run_cutover

from benchmarks.process_starts import new_processes, process_starts
from testbed.expansion import ROOT, Expansion
from testbed.flights_stack import FlightsStack
from testbed.processes import wait_until
from tests.support.expansion.prewarmed import GREEN, logs_of, pre_warm_and_cut_over
from tests.support.jvm_tests import gate_class_path
from tests.support.kills import kill_session
from tests.support.live_expansion import PROMPT, journal_of, live_application, operation_process

pytestmark = pytest.mark.integration


# In `make test`, test_expansion_control_run.py pre-warms.
@pytest.mark.slow
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_what_was_restored_behind_the_gate_is_not_restored_again(guarantee: str, tmp_path: Path) -> None:
    with live_application(tmp_path, rate=20, guarantee=guarantee) as (stack, expansion):
        pre_warm_and_cut_over(stack, expansion)
        stack.finish_replay()
        stack.await_equal(GREEN)


@pytest.mark.slow
def test_several_instances_keep_what_each_of_them_has_restored(tmp_path: Path) -> None:
    settings = {**PROMPT, "FLIGHTS_THREADS": "1"}
    with live_application(tmp_path, rate=20, settings=settings, two_instances=True) as (stack, expansion):
        pre_warm_and_cut_over(stack, expansion)
        assert len(logs_of(stack)) == 2
        assert all(any("restored" in line for line in log) for log in logs_of(stack))
        stack.finish_replay()
        stack.await_equal(GREEN)


@pytest.mark.slow
def test_what_a_killed_pre_warming_left_is_stopped_and_a_gate_that_leaks_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live_application(tmp_path, rate=20) as (stack, expansion):
        plan, admin = expansion.begin(), ClusterAdmin(expansion.connection)
        expansion.warm(plan)

        # Given a pre-warming that was killed while green was behind the gate, the next run stops green
        kill_prewarming(stack, expansion)
        expansion.begin()
        assert stack.run("status", GREEN) == 3

        # Given another one, when a person cuts over while nothing copies, then green is stopped first, and the
        # rollback leaves nothing of it
        kill_prewarming(stack, expansion)
        expansion.prove_copies()
        monkeypatch.setattr(copies, "READY_SECONDS", 5.0)
        with pytest.raises(Outage, match="the catch_up job"):
            run_cutover(expansion.application, expansion.connection, owner=expansion.owner)
        assert journal_of(expansion).phase is Phase.ROLLED_BACK
        assert stack.run("status", GREEN) == 3
        assert stack.run("status") == 0
        assert not admin.describe_group(GREEN).is_live

        # When the gate of the next run lets records through, then its traces are found and undone
        expansion.begin()
        for name, value in leaking(tmp_path).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(UnsafeState, match=r"committed offsets of flights.* and records in flights-g2-"):
            expansion.prewarm()
        assert stack.run("status", GREEN) == 3
        assert stack.run("status") == 0
        assert admin.committed(GREEN) == {}
        assert journal_of(expansion).gate_ends == {}
        repartitions = [m.target for m in plan.repartitions]
        assert admin.begin_offsets(repartitions) == admin.end_offsets(repartitions, read_committed=False)


def kill_prewarming(stack: FlightsStack, expansion: Expansion) -> None:
    """Kill the operation while green is behind the gate. Green goes on."""
    admin = ClusterAdmin(expansion.connection)
    process = operation_process(expansion, "expansion.prewarm:prewarm")
    wait_until(lambda: admin.describe_group(GREEN).is_live, timeout=120, what=f"{GREEN} to join its group")
    kill_session(process.pid)
    assert stack.run("status", GREEN) == 0
    assert journal_of(expansion).gate_ends


def leaking(directory: Path) -> dict[str, str]:
    """Compile a gate that stands open, and return the environment with which ``run.sh`` uses it."""
    source, classes = ROOT / "tests" / "java" / "LeakyGate.java", directory / "leaky"
    subprocess.run(["javac", "-cp", gate_class_path(), "-d", str(classes), str(source)], check=True, timeout=60)
    return {"FLIGHTS_GATE": "LeakyGate", "FLIGHTS_CLASSPATH": str(classes)}


def test_the_trace_sees_what_is_started() -> None:
    with process_starts() as started, new_processes(os.getpid()) as below:
        process = subprocess.Popen(["sleep", "60"])
        wait_until(lambda: len(below) == 1, timeout=30, what="the process to be seen")
        process.kill()
        process.wait()
    assert [e.what for e in started] == ["sleep 60"]
    subprocess.run(["true"], check=True)
    assert len(started) == 1
