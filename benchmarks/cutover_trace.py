"""A trace of one cutover, from the stop of the old generation to the first output of the new one.

`python -m benchmarks.cutover_trace` runs one expansion of the demo application and writes `docs/cutover-trace.md`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import TOPIC
from kafka_rescale.kafka.reading.range_reader import read_ranges

from benchmarks.live_application import live_application
from benchmarks.process_starts import Event, new_processes, process_starts
from benchmarks.sizes import AFTER, Sizes
from testbed.expansion import ROOT, Expansion


@dataclass
class CutoverTrace:
    """Everything that was seen during a cutover.

    :param caught_up_ms: wall clock when catch_up had reported that it was done, and began to end.
    :param timings: seconds per part of the pause.
    """

    began_ms: int = 0
    ended_ms: int = 0
    caught_up_ms: int = 0
    timings: dict[str, float] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def within(self, *kinds: str) -> list[Event]:
        """Return the events of the pause, in order."""
        inside = (e for e in self.events if e.kind in kinds and self.began_ms <= e.at_ms <= self.ended_ms)
        return sorted(inside, key=lambda e: e.at_ms)

    def started_by_catch_up(self) -> list[Event]:
        """Return the processes that catch_up started within the pause, while the cutover waited for it."""
        return [e for e in self.within("driver") if e.at_ms <= self.caught_up_ms]


def traced_cutover(expansion: Expansion) -> CutoverTrace:
    """Run the cutover of a warm expansion with its catch_up beside it."""
    trace = CutoverTrace()
    expansion.prove_copies()
    catch_up = expansion.submit("catch_up")
    with new_processes(catch_up.pid) as drivers, process_starts() as started:
        trace.timings = expansion.cut_over_beside(catch_up)
    application = expansion.application.application_id
    journals = [
        (at_ms, Journal.model_validate_json(value))
        for at_ms, value in writes(expansion.connection, application, Concern.JOURNAL)
    ]
    results = writes(expansion.connection, application, f"{Concern.RESULT}/catch_up")
    trace.caught_up_ms = next(
        at_ms for at_ms, value in results if JobResult.model_validate_json(value).state == "done"
    )
    begun = [j for _, j in journals if j.pause_started_ms]
    trace.began_ms = begun[-1].pause_started_ms
    trace.ended_ms = max(at_ms for at_ms, journal in journals if journal.phase is Phase.STARTED)
    phases: list[Event] = []
    for at_ms, journal in journals:
        if not phases or phases[-1].what != journal.phase:
            phases.append(Event(at_ms, "journal", str(journal.phase)))
    trace.events = [*phases, *started, *drivers]
    return trace


def writes(connection: KafkaConnection, application: str, concern: str) -> list[tuple[int, bytes]]:
    """Return every version of a control record that the topic still holds, with its time in ms."""
    admin = ClusterAdmin(connection)
    begin, end = admin.begin_offsets([TOPIC])[TOPIC][0], admin.end_offsets([TOPIC])[TOPIC][0]
    key = f"{application}/{concern}".encode()
    return [
        (message.timestamp()[1], message.value() or b"")
        for message in read_ranges(connection, TOPIC, {0: (begin, end)})
        if message.key() == key
    ]


def page(trace: CutoverTrace) -> str:
    """Return the trace in Markdown."""
    events = trace.within("journal", "process", "driver")
    rows = [f"| {(e.at_ms - trace.began_ms) / 1000:.3f} | {e.kind} | `{e.what}` |" for e in events]
    parts = [f"| {part} | {seconds:.3f} |" for part, seconds in trace.timings.items()]
    drivers = len(trace.started_by_catch_up())
    return "\n".join(
        [
            "# A trace of one cutover",
            "",
            "Made by `python -m benchmarks.cutover_trace` from a real run: the journal's phases as the control "
            "topic has them, every process that the cutover started (the interpreter's audit events), and every "
            "process that appeared below the running `catch_up` job (checked every 50 ms).",
            "",
            "The cutover starts only the commands of the application's own lifecycle. Processes that `catch_up` "
            f"started while the cutover waited for it: {drivers}. Later processes are Spark cleaning up after a "
            "job that has ended. The whole pause is one call in one task, so nothing in it waits for a scheduler.",
            "",
            f"Load average: {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores.",
            "",
            "| seconds into the pause | kind | what |",
            "|---:|---|---|",
            *rows,
            "",
            "| part | seconds |",
            "|---|---:|",
            *parts,
            "",
        ]
    )


def main() -> int:
    """Trace a cutover of the demo application and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cutover_trace", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "cutover-trace.md")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kafka-rescale-trace-") as scratch:
        directory = Path(scratch)
        sizes = Sizes.scaled(0.1, 1)
        with live_application(directory, sizes, 1, print) as live:
            file = ROOT / "applications" / "flights.yaml"
            expansion = Expansion.of_file(file, live.stack.bootstrap_servers, directory / "expansion")
            expansion.warm(expansion.begin(AFTER))
            expansion.prewarm()
            trace = traced_cutover(expansion)
            live.stop_sending()
    options.out.write_text(page(trace))
    print(f"{options.out}, after {time.monotonic() - began:.0f} s")
    return 0 if trace.within("journal")[-1].what == Phase.STARTED else 1


if __name__ == "__main__":
    sys.exit(main())
