"""The pause with small and with large state: with pre-warming it stays the same, without it grows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.copied_topic import fill
from benchmarks.downtime import expand, parts_of
from benchmarks.live_application import live_application
from benchmarks.sizes import Sizes
from testbed.expansion import ROOT, Expansion
from testbed.topics import FLIGHTS, PLANES

FILE = ROOT / "applications" / "flights.yaml"
JOB_SECONDS = 3600.0
SLOW_INPUT = {"flights_per_second": 50, "live_seconds": 3600}
"""Input that lasts long enough: with ten million entries, the pause begins after a quarter of an hour."""


def measure_prewarming(
    directory: Path, sizes: Sizes, keys: int, gated: bool, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Expand the live application with many additional entries in its table of planes.

    :param keys: number of the entries. Their changelog records have about 120 bytes each.
    :param gated: whether to pre-warm it.
    """
    with live_application(directory, replace(sizes, **SLOW_INPUT), 1, tell) as live:
        began = time.monotonic()
        fill(live.connection, PLANES, keys)
        live.await_processed("flights", live.admin.end_offsets([FLIGHTS, PLANES]))
        tell(f"{keys:,} entries in the table after {time.monotonic() - began:.0f} s")
        expansion = Expansion.of_file(FILE, live.stack.bootstrap_servers, directory / "expansion")
        expansion.patience = JOB_SECONDS
        if not gated:
            lifecycle = expansion.application.lifecycle.model_copy(update={"start_gated": None})
            expansion.application = expansion.application.model_copy(update={"lifecycle": lifecycle})
        around, parts, copied = expand(expansion, live)
        tell(
            f"{keys:,} entries, {'' if gated else 'not '}pre-warmed: pause of {parts['total']:.1f} s, "
            f"{around['every_task']:.1f} s until every task works"
        )
        live.stop_sending()
        return {
            "keys": keys,
            "gated": gated,
            "copied": copied,
            "parts": parts_of(parts),
            "around": around,
            "verified": bool(expansion.state().report["passed"]),
            "differences": [],
        }
