"""The pace of an expansion in sentences: for the log, the page, the status, and the gates."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.control.pace import Pace, Rate
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.switch_wait import because, span, utc
from kafka_rescale.core.values import per_second


def told_pause(pace: Pace) -> str:
    """Return who has paused the copy and since when; empty if it goes on."""
    if pace.paused is None:
        return ""
    return f"paused by {pace.paused.by} since {utc(pace.paused.at_ms)}{because(pace.paused.reason)}"


def told_limit(pace: Pace) -> str:
    """Return the limit and who has set it; empty without a limit."""
    said = pace.limited
    who = f"{said.by} has said so{because(said.reason)}" if said else "the application file"
    if pace.limit is None:
        return f"no limit: {who}" if said else ""
    return f"at most {per_second(pace.limit)}: {who}"


def told_rate(pace: Pace, rate: Rate) -> str:
    """Return how fast a job may copy now, and why; empty if nothing limits it."""
    if rate.is_paused:
        return f"It is {told_pause(pace) or 'paused'}."
    if rate.bytes_per_second is None:
        return f"It has {told_limit(pace)}." if pace.limited else ""
    if not rate.slowed_by:
        return f"It may use its limit, {per_second(rate.bytes_per_second)}{_unknown(rate)}."
    limit = f" of {per_second(rate.limit)}" if rate.limit is not None else ""
    return f"It may use {per_second(rate.bytes_per_second)}{limit}: {rate.slowed_by}{_unknown(rate)}."


def told_pace(control: ControlState) -> str:
    """Return the pace of the expansion in progress for the page and the status; empty if nothing limits it."""
    journal = control.journal
    if journal is None or control.pace is None or control.pace.plan != journal.plan.fingerprint:
        return ""
    return " ".join(_lines(control, control.pace))


def _lines(control: ControlState, pace: Pace) -> Iterator[str]:
    if pace.paused is not None:
        yield f"The copy is {told_pause(pace)}. `resume` lets it go on."
        if pace.tombstone_ms is not None:
            yield f"If it is paused for {span(pace.tombstone_ms)} (`delete.retention.ms`), copies begin anew."
    if limit := told_limit(pace):
        yield f"The pace: {limit}."
    if pace.limit is None or pace.paused is not None:
        return
    at_work = [(job, r) for job, r in control.results.items() if r.state in {"running", "ready", "carrying"}]
    for job, result in at_work:
        rate = control.rates.get(job)
        if rate is not None and (rate.run, rate.attempt) == (result.run, result.attempt):
            yield f"{job}: {told_rate(pace, rate)}"


def _unknown(rate: Rate) -> str:
    return f" (not known: {', '.join(rate.unknown)})" if rate.unknown else ""
