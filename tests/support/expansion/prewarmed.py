"""An expansion with pre-warming: what green restores behind the gate and at its start, and the cutover."""

from __future__ import annotations

import re
from collections import Counter

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.expansion.prewarming import gate_group
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.reading.range_reader import read_ranges

from benchmarks.cutover_trace import traced_cutover
from testbed.expansion import Expansion
from testbed.flights_stack import FlightsStack
from testbed.processes import wait_until
from tests.support.live_expansion import journal_of

GREEN = "flights-g2"
Restored = Counter[str]


def logs_of(stack: FlightsStack) -> list[list[str]]:
    """The log lines of each instance of green. Each line begins with its time."""
    texts = [file.read_text() for file in stack.directory.rglob(f"{GREEN}.log")]
    return [[line for line in text.splitlines() if line.startswith("20")] for text in texts]


def log_of(stack: FlightsStack) -> list[str]:
    """The lines of all instances in the order of their times."""
    return sorted(line for log in logs_of(stack) for line in log)


def is_running(stack: FlightsStack) -> bool:
    """Whether the last state that each instance has logged is RUNNING."""
    states = [[line for line in log if " state " in line] for log in logs_of(stack)]
    return all(found and found[-1].endswith("-> RUNNING") for found in states)


def restored_by(stack: FlightsStack, plan: Plan, since: int = 0) -> Restored:
    """How many records green has restored per changelog, by its own log from a given line on."""
    found: Restored = Counter()
    for line in log_of(stack)[since:]:
        if match := re.search(r"restored (\d+) records of (\S+)-\d+$", line):
            found[match[2]] += int(match[1])
    # Only changelogs of the plan count: each instance restores a global table's topic at every start.
    return +Counter({move.target: found[move.target] for move in plan.changelogs})


def records_between(
    expansion: Expansion, plan: Plan, starts: PartitionOffsets, ends: PartitionOffsets
) -> Restored:
    """How many records green's changelogs have between two sets of offsets."""
    found: Restored = Counter()
    for move in plan.changelogs:
        ranges = {p: (starts[move.target][p], end) for p, end in ends[move.target].items()}
        found[move.target] = sum(1 for _ in read_ranges(expansion.connection, move.target, ranges))
    return +found


def without_environment(words: list[str]) -> list[str]:
    """Leave out what `env` sets for a command."""
    return words[2:] if words[0] == "env" else words


def pre_warm_and_cut_over(stack: FlightsStack, expansion: Expansion) -> None:
    """Expand the flights until green runs, and assert what pre-warming promises."""
    # Given copies that are warm
    plan, admin = expansion.begin(), ClusterAdmin(expansion.connection)
    expansion.warm(plan)
    targets = [m.target for m in plan.changelogs]
    begins, ends = admin.begin_offsets(targets), admin.end_offsets(targets)

    # When green is pre-warmed
    timings = expansion.prewarm()

    # Then it has restored every record, and has ended without a trace in any group
    assert timings is not None
    assert restored_by(stack, plan) == records_between(expansion, plan, begins, ends)
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
    assert restored_by(stack, plan, since) == records_between(expansion, plan, ends, journal.green_ends)
    assert journal.prewarmed["restore"] > 0

    # and within the pause, nothing but the application's own commands is started
    phases = ["quiescing", "quiesced", "caught_up", "promoted", "started"]
    assert [e.what for e in trace.within("journal")] == phases
    commands = [without_environment(e.what.split()) for e in trace.within("process")]
    assert {words[1] for words in commands} == {"stop", "status"}, "it was started ahead of it, held at the door"
    assert {words[0] for words in commands} == {str(stack.program)}
    assert trace.started_by_catch_up() == []
