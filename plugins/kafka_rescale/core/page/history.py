"""The table of the attempts that have ended."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_rescale.core.control.history import PastExpansion, Proven, newest_first
from kafka_rescale.core.expansion.downtime import TOTAL, parts_of
from kafka_rescale.core.values import moment

HEADER = (
    "ended",
    "outcome",
    "partitions",
    "triggered by",
    "approved by",
    "took",
    "records copied",
    "bytes copied",
    "pause (predicted)",
    "copy (predicted)",
    "proven",
    "run",
)


def history_rows(history: Iterable[PastExpansion]) -> tuple[tuple[str | int | None, ...], ...]:
    """Return a row per attempt with the columns of ``HEADER``, the newest first. Unknown values are None."""
    return tuple(_row(past) for past in newest_first(history))


def pause_text(past: PastExpansion) -> str:
    """Return the parts of an attempt's pause in words, the longest part first. Empty without a pause."""
    parts = sorted(parts_of(past.timings), key=lambda part: -part.seconds)
    return ", ".join(f"{part.name} {part.seconds:.1f} s" for part in parts)


def _row(past: PastExpansion) -> tuple[str | int | None, ...]:
    records, size = past.copied
    _, copying = past.restored
    said = past.predicted
    return (
        moment(past.ended_ms),
        past.outcome.replace("_", " "),
        f"{past.before} → {past.after}{', in place' if past.in_place else ''}",
        past.triggered_by or None,
        past.approved_by or None,
        _seconds(past.seconds),
        records,
        size,
        _beside(past.timings.get(TOTAL), said.pause.get(TOTAL) if said else None),
        _beside(copying or None, said.copy_seconds if said else None),
        _proof_text(past.proven),
        past.run,
    )


def _proof_text(proven: Proven) -> str | None:
    said = []
    if proven.passed is not None:
        until = f", until {moment(proven.until_ms)}" if proven.until_ms else ""
        said.append(f"{proven.entries:,} entries equal{until}" if proven.passed else "differences")
    if proven.verified is not None:
        said.append("verified" if proven.verified else "not verified")
    if proven.accepted:
        said.append(f"{proven.accepted} findings accepted")
    return "; ".join(said) or None


def _beside(actual: float | None, predicted: float | None) -> str | None:
    if actual is None and predicted is None:
        return None
    return f"{_seconds(actual) or '–'} ({_seconds(predicted) or '–'})"


def _seconds(number: float | None) -> str | None:
    return None if number is None else f"{number:.1f} s"
