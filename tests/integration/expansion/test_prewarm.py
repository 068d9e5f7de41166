"""Green restores its stores ahead of the pause, and does nothing else behind the warm-up gate."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.expansion.prewarming import gate_group
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.operations.cutover.cutover import run_cutover

from benchmarks.cutover_trace import traced_cutover
from benchmarks.process_starts import new_processes, process_starts
from testbed.expansion import ROOT, Expansion
from testbed.flights_stack import FlightsStack
from testbed.jars import ensure_gate_jar, ensure_jars
from testbed.processes import wait_until
from tests.support.kills import kill_session
from tests.support.live_expansion import PROMPT, live_application, operation_process

pytestmark = pytest.mark.integration
GREEN = "flights-g2"
Restored = Counter[str]


def journal_of(expansion: Expansion) -> Journal:
    journal = expansion.state().journal
    assert journal is not None
    return journal


def logs_of(stack: FlightsStack) -> list[list[str]]:
    """The lines that each instance of the application itself has logged, each with its time."""
    texts = [file.read_text() for file in stack.directory.rglob(f"{GREEN}.log")]
    return [[line for line in text.splitlines() if line.startswith("20")] for text in texts]


def log_of(stack: FlightsStack) -> list[str]:
    """The lines of all instances in the order of their times."""
    return sorted(line for log in logs_of(stack) for line in log)


def is_running(stack: FlightsStack) -> bool:
    """Whether the last state that each instance has logged is RUNNING."""
    states = [[line for line in log if " state " in line] for log in logs_of(stack)]
    return all(found and found[-1].endswith("-> RUNNING") for found in states)


def restored_by(stack: FlightsStack, since: int = 0) -> Restored:
    """Records that the application has restored per changelog, by its own log from a line on."""
    found: Restored = Counter()
    for line in log_of(stack)[since:]:
        if match := re.search(r"restored (\d+) records of (\S+)-\d+$", line):
            found[match[2]] += int(match[1])
    return +found


def records_between(
    expansion: Expansion, plan: Plan, starts: PartitionOffsets, ends: PartitionOffsets
) -> Restored:
    """Records in green's changelogs from one set of offsets to another."""
    found: Restored = Counter()
    for move in plan.changelogs:
        ranges = {p: (starts[move.target][p], end) for p, end in ends[move.target].items()}
        found[move.target] = sum(1 for _ in read_ranges(expansion.connection, move.target, ranges))
    return +found


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", pytest.param("at_least_once", marks=pytest.mark.slow)])
def test_what_was_restored_behind_the_gate_is_not_restored_again(guarantee: str, tmp_path: Path) -> None:
    with live_application(tmp_path, rate=20, guarantee=guarantee) as (stack, expansion):
        pre_warm_and_cut_over(stack, expansion)


@pytest.mark.slow
def test_several_instances_keep_what_each_of_them_has_restored(tmp_path: Path) -> None:
    settings = {**PROMPT, "FLIGHTS_THREADS": "1"}
    with live_application(tmp_path, rate=20, settings=settings, two_instances=True) as (stack, expansion):
        pre_warm_and_cut_over(stack, expansion)
        assert len(logs_of(stack)) == 2
        assert all(any("restored" in line for line in log) for log in logs_of(stack))


def pre_warm_and_cut_over(stack: FlightsStack, expansion: Expansion) -> None:
    # Given copies that are warm
    plan, admin = expansion.begin(), ClusterAdmin(expansion.connection)
    expansion.warm(plan)
    targets = [m.target for m in plan.changelogs]
    begins, ends = admin.begin_offsets(targets), admin.end_offsets(targets)

    # When green is pre-warmed
    timings = expansion.prewarm()

    # Then it has restored every record, and is gone without a trace in any group
    assert timings is not None
    assert restored_by(stack) == records_between(expansion, plan, begins, ends)
    assert stack.run("status", GREEN) == 3
    assert not admin.describe_group(GREEN).is_live
    assert admin.committed(GREEN) == {}
    assert admin.committed(gate_group(GREEN)) == {}
    # and it has written nothing, though there was input all the time
    assert admin.end_offsets(targets, read_committed=False) == ends
    assert stack.run("status") == 0

    # When it is started for good, it restores only what was copied since
    since = len(log_of(stack))
    trace = traced_cutover(expansion)
    journal = journal_of(expansion)
    assert "restore" in trace.timings
    # A task without state may have written output while others were still restoring.
    wait_until(lambda: is_running(stack), timeout=60, what=f"{GREEN} to be RUNNING")
    assert restored_by(stack, since) == records_between(expansion, plan, ends, journal.green_ends)
    assert journal.prewarmed["restore"] > 0

    # and within the pause, nothing but the application's own commands is started
    phases = ["quiescing", "quiesced", "caught_up", "promoted", "started"]
    assert [e.what for e in trace.within("journal")] == phases
    commands = [e.what for e in trace.within("process")]
    assert {command.split()[1] for command in commands} == {"stop", "status", "start"}
    assert {command.split()[0] for command in commands} == {str(stack.program)}
    assert trace.started_by_catch_up() == []

    # and it ends with the right state
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

        # Given another, when somebody cuts over, then it is refused, and the rollback stops green
        kill_prewarming(stack, expansion)
        with pytest.raises(UnsafeState, match="a running instance"):
            run_cutover(expansion.application, expansion.connection, owner=expansion.owner)
        assert journal_of(expansion).phase is Phase.ROLLED_BACK
        assert stack.run("status", GREEN) == 3
        assert stack.run("status") == 0
        assert not admin.describe_group(GREEN).is_live

        # When the gate of the next run lets records through, then its traces are found, and undone
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
    """Kill the operation while green is behind the gate, and leave green alone."""
    admin = ClusterAdmin(expansion.connection)
    process = operation_process(expansion, "expansion.prewarm:prewarm")
    wait_until(lambda: admin.describe_group(GREEN).is_live, timeout=120, what=f"{GREEN} to join its group")
    kill_session(process.pid)
    assert stack.run("status", GREEN) == 0
    assert journal_of(expansion).gate_ends


def leaking(directory: Path) -> dict[str, str]:
    """Compile a gate that stands open, and return the environment with which ``run.sh`` uses it."""
    source, classes = ROOT / "tests" / "java" / "LeakyGate.java", directory / "leaky"
    class_path = f"{ensure_gate_jar()}:{ensure_jars('kafka')}/*"
    subprocess.run(["javac", "-cp", class_path, "-d", str(classes), str(source)], check=True, timeout=60)
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
