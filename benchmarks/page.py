"""The page of the results. The run that measured them makes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.downtime import PARTS
from benchmarks.names import CONTESTANTS, LEFT_OUT, PART_NAMES, RESET_PARTS
from benchmarks.proving_page import proving


def page(results: Mapping[str, Any]) -> str:
    """Return the page in Markdown. It shows only what was measured."""
    lines = ["# Benchmarks", "", "Made by `make bench`; the figures are in [results.json](results.json).", ""]
    lines += [*_machine(results), ""]
    downtime, reset = results.get("downtime"), results.get("full_reset")
    if downtime:
        lines += [*_downtime(downtime), ""]
    if downtime and reset:
        lines += [*_outage(downtime, reset), ""]
    if prewarming := results.get("prewarming"):
        lines += [*_prewarming(prewarming), ""]
    if found := results.get("proving"):
        lines += [*proving(found), ""]
    if copying := results.get("copying"):
        lines += [*_copying(copying), ""]
    return "\n".join([*lines, "## What is left out", "", *(f"* {line}" for line in LEFT_OUT), ""])


def ratios(copying: Mapping[str, Any]) -> list[str]:
    """Return how fast this copy is compared with each other contestant, one line each."""
    pace = {name: found["records_per_second"]["median"] for name, found in copying["contestants"].items()}
    return [
        f"{CONTESTANTS[ours]}: {pace[ours] / pace[other]:.2f} × {CONTESTANTS[other]}"
        for ours in ("copy_worker", "restore_job")
        for other in ("plain_loop", "streams_restore")
    ]


def outages(downtime: Sequence[Mapping[str, Any]], reset: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the outage of both ways, with a line for each size of the state."""
    return [
        f"state {a['copies']}×: {a['parts']['total']:.1f} s by expansion, {b['parts']['total']:.1f} s by reset "
        f"({b['parts']['total'] / a['parts']['total']:.1f} times as long)"
        for a, b in zip(downtime, reset, strict=True)
    ]


def _machine(results: Mapping[str, Any]) -> Iterable[str]:
    m = results["machine"]
    yield (
        f"{results['measured']}, scale {results['scale']:g}, {results['took_minutes']:g} minutes on {m['cores']} "
        f"cores with {m['memory_gib']} GiB: Kafka {m['kafka']}, Spark {m['spark']}, Python {m['python']}, "
        f"Java {m['java']}, confluent-kafka {m['confluent_kafka']}. Load average before: {m['load_before']:g}."
    )


def _downtime(rows: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    yield from ("## The pause", "", "![The pause in parts](pause.svg)", "")
    yield (
        "A live application goes from 4 to 8 partitions while flights keep arriving. The pause is from the stop "
        "of the old generation to the first output of the new one; everything else goes on while the application "
        "works. Verify compared the whole state, and the final results were as computed independently."
    )
    yield from ("", *_table(["seconds", *(f"state {row['copies']}×" for row in rows)], _downtime_lines(rows)))


def _downtime_lines(rows: Sequence[Mapping[str, Any]]) -> Iterable[list[str]]:
    for part in (*PARTS, "total"):
        name = "**pause**" if part == "total" else PART_NAMES[part]
        yield [name, *(f"{row['parts'][part]:.2f}" if part in row["parts"] else "–" for row in rows)]
    for step in ("copy", "prewarm", "verify"):
        seconds = (f"{row['around'][step]:.1f}" if step in row["around"] else "–" for row in rows)
        yield [f"{step} (application works)", *seconds]
    yield ["flights processed before", *(f"{row['flights']:,}" for row in rows)]
    yield ["changelog records copied", *(f"{row['copied']['records']:,}" for row in rows)]
    yield ["changelog MB copied", *(f"{row['copied']['bytes'] / 1e6:,.1f}" for row in rows)]


def growth(rows: Sequence[Mapping[str, Any]], gated: bool) -> tuple[float, float]:
    """Return by which factors the pause, and the time until every task works, grow with the state."""
    own = sorted((row for row in rows if row["gated"] is gated), key=lambda row: int(row["keys"]))
    first, last = own[0], own[-1]
    return (
        float(last["parts"]["total"] / first["parts"]["total"]),
        float(last["around"]["every_task"] / first["around"]["every_task"]),
    )


def _prewarming(rows: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    yield from ("## Pre-warming", "", "![Pause by the size of the state](prewarming.svg)", "")
    yield (
        "The same expansion with more and more entries in one table of the application. Pre-warmed, the new "
        "generation restores its stores behind the warm-up gate, ahead of the pause. The pause ends with the "
        "first output, which comes from whichever task has the least to restore; every task works when each "
        "partition has processed what had come in meanwhile."
    )
    yield ""
    header = ["", *(f"{row['keys']:,} entries, {'' if row['gated'] else 'not '}pre-warmed" for row in rows)]
    lines = [
        ["**pause** (s)", *(f"{row['parts']['total']:.2f}" for row in rows)],
        ["**until every task works** (s)", *(f"{row['around']['every_task']:.2f}" for row in rows)],
        ["its start and restore (s)", *(f"{row['parts'].get('restore', 0.0):.2f}" for row in rows)],
        ["pre-warming ahead of it (s)", *(f"{row['around'].get('prewarm', 0.0):.1f}" for row in rows)],
        ["changelog MB copied", *(f"{row['copied']['bytes'] / 1e6:,.1f}" for row in rows)],
    ]
    yield from (*_table(header, lines), "")
    for gated, name in ((True, "pre-warmed"), (False, "not pre-warmed")):
        pause, every_task = growth(rows, gated)
        yield (
            f"* {name}, the largest state against the smallest: the pause {pause:.2f} ×, until every task works "
            f"{every_task:.2f} ×"
        )


def _outage(downtime: Sequence[Mapping[str, Any]], reset: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    yield from ("## The way without", "", "![Outage of both ways](outage.svg)", "")
    yield (
        "Stop, grow the inputs, run Kafka's own `StreamsResetter`, restart, reprocess the input from its start. "
        "The outage is over when everything that had been processed before has been processed again."
    )
    yield from ("", *(f"* {line}" for line in outages(downtime, reset)), "")
    lines = ([PART_NAMES[p], *(f"{r['parts'][p]:.2f}" for r in reset)] for p in (*RESET_PARTS, "total"))
    stale = ", ".join(f"{row['stale_outputs']:,} (state {row['copies']}×)" for row in reset)
    yield (
        f"After the reset the state was right, but old results stayed in the output topics for good: {stale}. "
        "They are sessions that had been written before it and have grown since; the new incarnation cannot know "
        "that they were ever written, so it does not delete them."
    )
    yield ""
    yield from _table(["seconds of the reset", *(f"state {row['copies']}×" for row in reset)], lines)


def _copying(copying: Mapping[str, Any]) -> Iterable[str]:
    runs = len(next(iter(copying["contestants"].values()))["seconds"])
    yield from ("## Copy throughput", "", "![Throughput](copying.svg)", "")
    yield (
        f"One changelog of {copying['records']:,} records of {copying['record_bytes']} bytes, from 4 to 8 "
        f"partitions, {runs} runs each in alternating order; every copy was compared with its source."
    )
    header = ["", "records/s (median)", "least – most", "MB/s", "start-up and end (s)"]
    yield from ("", *_table(header, (_pace_line(n, f) for n, f in copying["contestants"].items())))
    yield from ("", *(f"* {line}" for line in ratios(copying)))


def _pace_line(name: str, found: Mapping[str, Any]) -> list[str]:
    pace = found["records_per_second"]
    around = sorted(found["around"])[len(found["around"]) // 2]
    spread = f"{pace['least']:,.0f} – {pace['most']:,.0f}"
    return [
        CONTESTANTS[name],
        f"{pace['median']:,.0f}",
        spread,
        f"{found['megabytes_per_second']:.1f}",
        f"{around:.1f}",
    ]


def _table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterable[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|---|{'---:|' * (len(header) - 1)}"
    for line in lines:
        yield f"| {' | '.join(line)} |"
