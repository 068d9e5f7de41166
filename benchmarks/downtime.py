"""The pause of an expansion in parts, as the journal has it, with small and with large state."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka_rescale.embedded.expansion import ROOT, Expansion
from kafka_rescale.embedded.outputs import compare_with_expected

from benchmarks.live_application import live_application
from benchmarks.sizes import AFTER, Sizes

PARTS = (
    "drain",
    "quiesce",
    "prove",
    "delta",
    "promote",
    "grow",
    "offsets",
    "start",
    "restore",
    "first_output",
    "between",
)


def measure_downtime(directory: Path, sizes: Sizes, copies: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Expand the live application, and check verify's report and the final results.

    :returns: ``parts``: seconds of the pause, ``total`` of all of it; ``around``: seconds of what goes on while
        the application works; ``copied``: records and bytes that the restore jobs copied.
    """
    with live_application(directory, sizes, copies, tell) as live:
        file = ROOT / "applications" / "flights.yaml"
        expansion = Expansion.of_file(file, live.stack.bootstrap_servers, directory / "expansion")
        around, parts, copied = _expand(expansion)
        tell(f"expansion {copies}×: pause of {parts['total']:.1f} s; copied in {around['copy']:.1f} s before it")
        report = expansion.state().report
        known = {part: parts[part] for part in PARTS if part in parts}
        known["between"] = round(parts["total"] - sum(known.values()), 3)
        sent = live.finished("flights-g2")
        differences = compare_with_expected(live.stack.client, sent, application_id="flights-g2").differences
        return {
            "copies": copies,
            "flights": live.preloaded,
            "copied": copied,
            "parts": {**known, "total": parts["total"]},
            "around": around,
            "verified": bool(report["passed"]),
            "equal": not differences,
            "differences": differences,
        }


def _expand(expansion: Expansion) -> tuple[dict[str, float], dict[str, float], dict[str, int]]:
    """Run the steps of the DAG.

    :returns: seconds around the pause, parts of the pause, and how much the restore jobs copied.
    """
    around: dict[str, float] = {}
    plan = expansion.begin(AFTER)
    began = time.monotonic()
    expansion.warm(plan)
    around["copy"] = round(time.monotonic() - began, 3)
    jobs = [result for name, result in expansion.state().results.items() if name.startswith("restore/")]
    copied = {"records": sum(job.records for job in jobs), "bytes": sum(job.bytes for job in jobs)}
    parts = expansion.cut_over()
    began = time.monotonic()
    expansion.verify()
    around["verify"] = round(time.monotonic() - began, 3)
    expansion.finish()
    return around, parts, copied
