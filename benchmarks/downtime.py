"""The parts of an expansion's pause, from the journal, with small and with large state."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.live_application import LiveApplication, live_application
from benchmarks.sizes import AFTER, Sizes
from testbed.expansion import ROOT, Expansion
from testbed.outputs import compare_with_expected
from testbed.topics import FLIGHTS, PLANES

PARTS = (
    "drain",
    "quiesce",
    "prove",
    "delta",
    "delta_proof",
    "promote",
    "grow",
    "offsets",
    "start",
    "release",
    "restore",
    "first_output",
    "between",
)


def measure_downtime(directory: Path, sizes: Sizes, copies: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Expand the live application, and check verify's report and the final results.

    :returns: ``parts``: seconds of each part of the pause, and their ``total``. ``around``: seconds of the steps
        while the application works, and ``every_task``. ``copied``: records and bytes that the restore jobs
        copied.
    """
    with live_application(directory, sizes, copies, tell) as live:
        file = ROOT / "applications" / "flights.yaml"
        expansion = Expansion.of_file(file, live.stack.bootstrap_servers, directory / "expansion")
        around, parts, copied = expand(expansion, live)
        tell(f"expansion {copies}×: pause of {parts['total']:.1f} s; copied in {around['copy']:.1f} s before it")
        report = expansion.state().report
        sent = live.finished("flights-g2")
        differences = compare_with_expected(live.stack.client, sent, application_id="flights-g2").differences
        return {
            "copies": copies,
            "flights": live.preloaded,
            "copied": copied,
            "parts": parts_of(parts),
            "around": around,
            "verified": bool(report["passed"]),
            "equal": not differences,
            "differences": differences,
        }


def parts_of(timings: dict[str, float]) -> dict[str, float]:
    """Return the parts of a pause in their order, the time between them, and the total."""
    known = {part: timings[part] for part in PARTS if part in timings}
    between = round(timings["total"] - sum(known.values()), 3)
    return {**known, "between": between, "total": timings["total"]}


def expand(
    expansion: Expansion, live: LiveApplication
) -> tuple[dict[str, float], dict[str, float], dict[str, int]]:
    """Run the steps of the DAG.

    :returns: seconds around the pause, parts of the pause, and how much the restore jobs copied. ``every_task`` is
        the time from the stop of the old generation until every task of the new one has processed the input so
        far. It is longer than the time to the first output, which comes from the task that has the least to
        restore.
    """
    around: dict[str, float] = {}
    plan = expansion.begin(AFTER)
    began = time.monotonic()
    expansion.warm(plan)
    around["copy"] = round(time.monotonic() - began, 3)
    jobs = [result for name, result in expansion.state().results.items() if name.startswith("restore/")]
    copied = {"records": sum(job.records for job in jobs), "bytes": sum(job.bytes for job in jobs)}
    if prewarmed := expansion.prewarm():
        around["prewarm"] = round(sum(prewarmed.values()), 3)
    parts = expansion.cut_over()
    began = time.monotonic()
    live.await_processed("flights-g2", live.admin.end_offsets([FLIGHTS, PLANES]))
    around["every_task"] = round(parts["total"] + time.monotonic() - began, 3)
    began = time.monotonic()
    expansion.verify()
    around["verify"] = round(time.monotonic() - began, 3)
    expansion.finish()
    return around, parts, copied
