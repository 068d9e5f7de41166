"""All measurements in one run: `make bench`, or `make bench ARGS='--scale 0.1 --out var/bench'`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown

from benchmarks.charts import draw
from benchmarks.copying import measure_copying
from benchmarks.downtime import measure_downtime
from benchmarks.full_reset import measure_full_reset
from benchmarks.machine import machine
from benchmarks.page import page
from benchmarks.prewarming import measure_prewarming
from benchmarks.proving import measure_proving
from benchmarks.sizes import GROWTH, STATES, Sizes
from testbed.expansion import ROOT
from testbed.jars import ensure_demo_classes, ensure_jars

MEASUREMENTS = ("copying", "downtime", "full_reset", "prewarming", "proving")
console = Console(highlight=False)


class Run:
    """One run.

    :param directory: for everything that is not a result. It is emptied first.
    :param states: multiples of the state to measure with.
    :param growth: multiples of the entries to measure with, with and without pre-warming.
    """

    def __init__(self, directory: Path, sizes: Sizes, states: Sequence[int], growth: Sequence[int]) -> None:
        self._directory, self._sizes, self._states, self._growth = directory, sizes, states, growth
        self._began = time.monotonic()

    @property
    def minutes(self) -> float:
        """The minutes that the run has taken so far."""
        return round((time.monotonic() - self._began) / 60, 1)

    def measure(self, wanted: Iterable[str]) -> dict[str, Any]:
        """Measure everything that was asked for, one after the other."""
        found: dict[str, Any] = {}
        if "copying" in wanted:
            found["copying"] = measure_copying(self._empty("copying"), self._sizes, self._tell)
        for copies in self._states:
            if "downtime" in wanted:
                directory = self._empty("downtime")
                row = measure_downtime(directory, self._sizes, copies, self._tell)
                found.setdefault("downtime", []).append(row)
            if "full_reset" in wanted:
                directory = self._empty("full_reset")
                row = measure_full_reset(directory, self._sizes, copies, self._tell)
                found.setdefault("full_reset", []).append(row)
        if "proving" in wanted:
            found["proving"] = measure_proving(self._empty("proving"), self._sizes, self._tell)
        if "prewarming" in wanted:
            found["prewarming"] = [
                measure_prewarming(
                    self._empty("prewarming"), self._sizes, self._sizes.keys * growth, gated, self._tell
                )
                for growth in self._growth
                for gated in (True, False)
            ]
        return found

    def _empty(self, name: str) -> Path:
        shutil.rmtree(self._directory, ignore_errors=True)
        directory = self._directory / name
        directory.mkdir(parents=True)
        console.rule(name)
        return directory

    def _tell(self, line: str) -> None:
        console.print(f"[dim]{self.minutes:5.1f} min[/dim]  {line}")


def run(options: argparse.Namespace) -> int:
    """Measure, print and write. Return 1 if a result of a measured application is wrong."""
    ensure_jars("connector")
    ensure_demo_classes()
    sizes = Sizes.scaled(options.scale, options.repeats, options.keys)
    before = machine()
    measuring = Run(options.directory.resolve(), sizes, options.states, options.growth)
    results: dict[str, Any] = measuring.measure(options.only or MEASUREMENTS)
    results |= {"measured": datetime.now(UTC).date().isoformat(), "machine": before, "scale": options.scale}
    results |= {"sizes": asdict(sizes), "took_minutes": measuring.minutes}
    write(results, options.out)
    console.print(Markdown(page(results)))
    console.print(f"Results, page and pictures are in {options.out}.")
    judged = ("downtime", "full_reset", "prewarming")
    wrong = [f"{name}: {line}" for name in judged for line in _wrong(results.get(name, []))]
    for line in wrong:
        console.print(f"[red]wrong result[/red] {line}", markup=True)
    return 1 if wrong else 0


def write(results: dict[str, Any], directory: Path) -> None:
    """Write figures, page and pictures."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    (directory / "README.md").write_text(page(results))
    draw(results, directory)


def _wrong(rows: list[dict[str, Any]]) -> list[str]:
    unverified = [f"state {_size(row)}: verify failed" for row in rows if not row.get("verified", True)]
    return unverified + [f"state {_size(row)}: {line}" for row in rows for line in row["differences"]]


def _size(row: dict[str, Any]) -> str:
    return f"{row['copies']}×" if "copies" in row else f"of {row['keys']:,} entries"


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes; 1 is what is published")
    parser.add_argument("--repeats", type=int, default=3, help="runs of everybody who copies")
    parser.add_argument("--states", type=int, nargs="+", default=STATES, help="multiples of the state")
    parser.add_argument(
        "--keys", type=int, help="entries of the smallest state pre-warmed; 625000: up to 10 million"
    )
    parser.add_argument("--growth", type=int, nargs="+", default=GROWTH, help="multiples of those entries")
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, help="leave the others out")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks", help="where the results go")
    parser.add_argument(
        "--directory", type=Path, default=ROOT / "var" / "benchmarks", help="scratch, emptied first"
    )
    return run(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
