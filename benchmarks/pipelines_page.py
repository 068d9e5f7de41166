"""The page and the picture of what a run of a pipeline costs. The run that measured it makes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.figure import Figure

from benchmarks.charts import save

OURS, THEIRS = "pipeline", "structured_streaming"
NAMES = {OURS: "a pipeline of this project", THEIRS: "Structured Streaming"}
COLOURS = {OURS: "tab:blue", THEIRS: "tab:orange"}
PARTS = {"run": "whole run", "job": "job without the JVM's start", "batch": "batch"}

LEFT_OUT = (
    "One broker, without replication, shares the cores with everybody; only ratios carry over to other machines.",
    "Airflow's scheduling, which both need in the same way. A run without anything new is the assignment and the "
    "idle check of a pipeline's DAG, after which it starts no driver.",
    "A query of Structured Streaming that stays up has no driver to start: then `batch` is what counts. Here both "
    "are scheduled jobs, one `spark-submit` per run.",
    "Guarantees differ: a pipeline commits outputs, state and offsets in one Kafka transaction; the Kafka sink of "
    "Structured Streaming is at least once. A pipeline's state is in a changelog on the broker and in files; "
    "Structured Streaming's is in files only (RocksDB, with its defaults).",
    "Outputs differ in number: a pipeline writes every update, as Kafka Streams without a cache does; update mode "
    "writes one row per key and batch.",
    "One operation, `count` per key, in two tasks on `local[2]`, with keys of 13 and values of 20 bytes.",
)


def page(results: Mapping[str, Any]) -> str:
    """Return the page in Markdown."""
    m = results["machine"]
    return "\n".join(
        [
            "# What a run of a pipeline costs, beside Structured Streaming",
            "",
            "Made by `python -m benchmarks.pipelines`; the figures are in [pipelines.json](pipelines.json).",
            "",
            f"{results['measured']}, {results['took_minutes']:g} minutes on {m['cores']} cores with "
            f"{m['memory_gib']} GiB: Kafka {m['kafka']}, Spark {m['spark']}, Python {m['python']}, "
            f"Java {m['java']}, confluent-kafka {m['confluent_kafka']}. "
            f"Load average before: {m['load_before']:g}.",
            "",
            "Both count the records per key of one topic, in turns, in one run on one broker; each run is a "
            "`spark-submit` of its own. At the end every key had the same count in both.",
            "",
            "![What a run costs](pipelines.svg)",
            "",
            *_table(results["rows"]),
            "",
            "Medians in seconds; in brackets the least and the most where there were several runs. `whole run` is "
            "what a schedule waits for, `job` is from the first line of the program to its last, `batch` is the "
            "longest task of a pipeline (fencing, restoring, processing, committing, saving) and Structured "
            "Streaming's `triggerExecution`. × is Structured Streaming's median as a multiple of ours.",
            "",
            "## What is left out",
            "",
            *(f"* {line}" for line in LEFT_OUT),
            "",
        ]
    )


def draw(results: Mapping[str, Any], directory: Path) -> Path:
    """Draw the whole runs of both, grouped by their work."""
    whats = _whats(results["rows"])
    figure = Figure(figsize=(9, 1.2 + 0.8 * len(whats)), layout="constrained")
    axes = figure.add_subplot()
    for place, who in enumerate(NAMES):
        found = [_seconds(results["rows"], what, who, "run") for what in whats]
        middles = [median(each) for each in found]
        spread = [[m - min(f) for m, f in zip(middles, found, strict=True)]]
        spread.append([max(f) - m for m, f in zip(middles, found, strict=True)])
        at = [number + 0.36 * place for number in range(len(whats))]
        axes.barh(at, middles, xerr=spread, height=0.34, color=COLOURS[who], label=NAMES[who], capsize=3)
    axes.set_yticks([number + 0.18 for number in range(len(whats))], whats)
    axes.invert_yaxis()
    axes.set_xlabel("seconds of a whole run: median, least and most")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return save(figure, directory, "pipelines")


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    columns = [f"{title}, {who}" for title in PARTS.values() for who in ("ours", "theirs", "×")]
    yield f"| | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(columns)}"
    for what in _whats(rows):
        cells: list[str] = []
        for part in PARTS:
            ours, theirs = (_seconds(rows, what, who, part) for who in (OURS, THEIRS))
            ratio = f"{median(theirs) / median(ours):.2f}" if median(ours) else "–"
            cells += [_cell(ours), _cell(theirs), ratio]
        yield f"| {what} | {' | '.join(cells)} |"


def _cell(found: Sequence[float]) -> str:
    middle = f"{median(found):.2f}"
    return middle if len(found) == 1 else f"{middle} ({min(found):.2f}–{max(found):.2f})"


def _whats(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["what"] for row in rows))


def _seconds(rows: Sequence[Mapping[str, Any]], what: str, who: str, part: str) -> list[float]:
    return [row[part] for row in rows if row["what"] == what and row["who"] == who]
