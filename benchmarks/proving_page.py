"""The section of the page with the results of the proof."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.proving import DELTA, PROOF, READ


def proving(found: Mapping[str, Any]) -> Iterable[str]:
    """Return the section in Markdown."""
    rows = found["rows"]
    yield from ("## The proof before the promotion", "")
    yield (
        "One store and its copy, from 4 to 8 partitions, records of 100 bytes, compared by a Spark session that "
        "has run before, beside the same session that only reads and hashes both logs. The third line: a last "
        "delta of that size, compared by the driver of `catch_up`, one store by one thread."
    )
    yield ""
    yield _line("records/s of both generations (median)", (f"{r['entries']:,} entries" for r in rows))
    yield "|---|" + "---:|" * len(rows)
    for name in (READ, PROOF, DELTA):
        yield _line(name, (f"{_pace(r, name):,.0f}" for r in rows))
    yield _line("proof, as a share of reading", (f"{_pace(r, PROOF) / _pace(r, READ):.2f}" for r in rows))
    yield ""
    yield (
        f"{found['stores']} empty stores of {found['partitions']} partitions take {found['fixed_seconds']} s, and "
        f"with {found['small']} entries each {found['small_seconds']} s."
    )


def _line(name: str, cells: Iterable[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def _pace(row: Mapping[str, Any], name: str) -> float:
    return float(2 * row["entries"] / row["median"][name])
