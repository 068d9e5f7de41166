"""The results as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.downtime import PARTS
from benchmarks.names import CONTESTANTS, PART_NAMES, RESET_PARTS

# Small files that stay the same if the figures stay the same.
mpl.rcParams["svg.hashsalt"] = "kafka-rescale"
mpl.rcParams["svg.fonttype"] = "none"


def draw(results: Mapping[str, Any], directory: Path) -> list[Path]:
    """Draw the measurements, and return the files."""
    files = []
    if downtime := results.get("downtime"):
        files.append(save(_stacked(downtime, PARTS, "Pause of an expansion from 4 to 8"), directory, "pause"))
    if downtime and (reset := results.get("full_reset")):
        files.append(save(_compared(downtime, reset), directory, "outage"))
    if prewarming := results.get("prewarming"):
        files.append(save(_growth(prewarming), directory, "prewarming"))
    if copying := results.get("copying"):
        files.append(save(_paces(copying["contestants"]), directory, "copying"))
    return files


def _stacked(rows: Sequence[Mapping[str, Any]], parts: Sequence[str], title: str) -> Figure:
    figure = Figure(figsize=(9, 1.4 + 0.7 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    _bars(axes, [(f"state {row['copies']}×", row["parts"]) for row in rows], parts)
    axes.set_title(title)
    return figure


def _compared(downtime: Sequence[Mapping[str, Any]], reset: Sequence[Mapping[str, Any]]) -> Figure:
    rows: list[tuple[str, Mapping[str, float]]] = []
    for ours, theirs in zip(downtime, reset, strict=True):
        rows.append((f"expansion, {ours['copies']}×", {"pause": ours["parts"]["total"]}))
        rows.append((f"reset, {theirs['copies']}×", theirs["parts"]))
    figure = Figure(figsize=(9, 1.4 + 0.55 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    _bars(axes, rows, ("pause", *RESET_PARTS))
    axes.set_title("Outage of the application: expansion, and reset with reprocessing")
    return figure


def _growth(rows: Sequence[Mapping[str, Any]]) -> Figure:
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.add_subplot()
    for gated, label in ((False, "not pre-warmed"), (True, "pre-warmed")):
        own = [row for row in rows if row["gated"] is gated]
        keys = [row["keys"] / 1e6 for row in own]
        colour = "tab:green" if gated else "tab:red"
        axes.plot(keys, [row["parts"]["total"] for row in own], "o-", color=colour, label=f"pause, {label}")
        every_task = [row["around"]["every_task"] for row in own]
        axes.plot(keys, every_task, "o--", color=colour, alpha=0.6, label=f"until every task works, {label}")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("million entries of state")
    axes.set_ylabel("seconds")
    axes.set_title("Pause of an expansion from 4 to 8, by the size of the state")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def _bars(axes: Any, rows: Sequence[tuple[str, Mapping[str, float]]], parts: Sequence[str]) -> None:
    colours = mpl.colormaps["tab20"]
    labels = [label for label, _ in rows]
    left = [0.0] * len(rows)
    for index, part in enumerate(parts):
        widths = [values.get(part, 0.0) for _, values in rows]
        axes.barh(labels, widths, left=left, color=colours(index), label=PART_NAMES.get(part, part), height=0.6)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    for position, total in enumerate(left):
        axes.text(total, position, f" {total:.1f} s", va="center")
    axes.set_xlim(0, max(left) * 1.12)
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    axes.spines[["top", "right"]].set_visible(False)
    axes.figure.legend(loc="outside lower center", ncols=6, frameon=False, fontsize="small")


def _paces(contestants: Mapping[str, Mapping[str, Any]]) -> Figure:
    figure = Figure(figsize=(9, 0.8 + 0.5 * len(contestants)), layout="constrained")
    axes = figure.add_subplot()
    for name, found in contestants.items():
        pace = found["records_per_second"]
        middle = pace["median"] / 1000
        spread = [[middle - pace["least"] / 1000], [pace["most"] / 1000 - middle]]
        axes.barh(CONTESTANTS[name], middle, xerr=spread, color="tab:blue", height=0.6, capsize=3)
    axes.invert_yaxis()
    axes.set_xlabel("1000 records/s of 100 bytes: median, least and most")
    axes.set_title("Throughput, start-up left out")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def save(figure: Figure, directory: Path, name: str) -> Path:
    """Write a picture, and return its file."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{name}.svg"
    figure.savefig(file, metadata={"Date": None})
    return file
