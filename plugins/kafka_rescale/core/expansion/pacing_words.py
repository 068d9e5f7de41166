"""The pace of an expansion in sentences: for the log, the page, the status, and the gates."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.pace import DiskRest, Pace, Rate
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.bridge_progress import AT_WORK
from kafka_rescale.core.expansion.pacing_say import is_over
from kafka_rescale.core.expansion.switch_wait import because, span, utc
from kafka_rescale.core.values import per_second, size

FRESH_MS = 90_000
"""A driver writes its rate every few seconds. An older rate does not count: its job may be dead."""


def told_pause(pace: Pace) -> str:
    """Return who has paused the copy and since when; empty if it goes on."""
    if pace.paused is None:
        return ""
    return f"paused by {pace.paused.by} since {utc(pace.paused.at_ms)}{because(pace.paused.reason)}"


def told_pause_of(control: ControlState) -> str:
    """Return who has paused the copy of the expansion in progress; empty if nobody has."""
    journal = control.journal
    return told_pause(Pace.of(journal.plan.fingerprint, control.pace)) if journal is not None else ""


def resumed_ms(control: ControlState) -> int:
    """Return when a person has ended the last pause of the expansion in progress; 0 without such an end."""
    journal = control.journal
    word = Pace.of(journal.plan.fingerprint, control.pace).resumed if journal is not None else None
    return word.at_ms if word is not None else 0


def told_disk(rest: DiskRest) -> str:
    """Return why a copy rests, with the figures and the remedy."""
    of = f" of {size(rest.total)}" if rest.total is not None else ""
    return (
        f"{named_rest(rest)}. It has {rest.usable:,} usable bytes ({size(rest.usable)}){of}, and "
        f"{size(rest.copied)} of copies. Of both together, {rest.percent} % must stay free (`free_disk_percent`). "
        f"Free space there, enlarge the disk, or move replicas away: with {rest.enough:,} usable bytes "
        f"({size(rest.enough)}) the copy goes on by itself. To give up instead, roll back, then delete the topics "
        "of the new generation"
    )


def named_rest(rest: DiskRest) -> str:
    """Return since when a copy rests, and for which log dir."""
    return f"at rest since {utc(rest.since_ms)}: log dir {rest.path!r} of broker {rest.broker} is too full"


def told_stop(control: ControlState, now_ms: int, *, with_figures: bool = True) -> str:
    """Return why the expansion in progress copies nothing: a person, or a disk; empty if the copy goes on.

    :param with_figures: whether the figures of a disk are told, which change again and again.
    """
    if paused := told_pause_of(control):
        return paused
    rests = (rate.disk for _, rate in _at_work(control) if now_ms - rate.at_ms < FRESH_MS)
    rest = next((rest for rest in rests if rest is not None), None)
    if rest is None:
        return ""
    return told_disk(rest) if with_figures else named_rest(rest)


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
        stops = filter(None, [told_pause(pace), told_disk(rate.disk) if rate.disk is not None else ""])
        return f"It is {', and '.join(stops) or 'paused'}."
    if rate.bytes_per_second is None:
        if not pace.limited and not rate.unknown:
            return ""
        return f"It has {told_limit(pace) or 'no limit'}{_unknown(rate)}."
    if not rate.slowed_by:
        return f"It may use its limit, {per_second(rate.bytes_per_second)}{_unknown(rate)}."
    limit = f" of {per_second(rate.limit)}" if rate.limit is not None else ""
    return f"It may use {per_second(rate.bytes_per_second)}{limit}: {rate.slowed_by}{_unknown(rate)}."


def told_pace(control: ControlState) -> str:
    """Return the pace of the expansion in progress for the page and the status; empty if nothing limits it."""
    journal = control.journal
    if journal is None or is_over(control, journal):
        return ""
    is_rolled_back = journal.phase is Phase.ROLLED_BACK
    pace = Pace.of(journal.plan.fingerprint, control.pace)
    return " ".join(_lines(control, pace, is_rolled_back=is_rolled_back))


def _lines(control: ControlState, pace: Pace, *, is_rolled_back: bool) -> Iterator[str]:
    if pace.paused is not None and is_rolled_back:
        # The pause holds for all attempts at the plan, and nobody can end it while nothing is copied.
        yield f"The copy is {told_pause(pace)}, and the next run of it begins paused: `resume` it then."
    elif pace.paused is not None:
        yield f"The copy is {told_pause(pace)}. `resume` lets it go on."
        if pace.tombstone_ms is not None:
            yield f"If it is paused for {span(pace.tombstone_ms)} (`delete.retention.ms`), copies begin anew."
    at_work = list(_at_work(control))
    if rest := next((rate.disk for _, rate in at_work if rate.disk is not None), None):
        yield f"The copy is {told_disk(rest)}."
    if limit := told_limit(pace):
        yield f"The pace: {limit}."
    if pace.limit is None and (unknown := next((rate for _, rate in at_work if rate.unknown), None)):
        yield f"Not known: {', '.join(unknown.unknown)}."
    if pace.limit is not None and pace.paused is None:
        yield from (f"{job}: {told_rate(pace, rate)}" for job, rate in at_work if rate.disk is None)


def _at_work(control: ControlState) -> Iterator[tuple[str, Rate]]:
    """Yield the rates of the jobs that are at work, as far as they are of the same attempt."""
    for job, result in control.results.items():
        rate = control.rates.get(job)
        is_of_attempt = rate is not None and (rate.run, rate.attempt) == (result.run, result.attempt)
        if rate is not None and is_of_attempt and result.state in AT_WORK:
            yield job, rate


def _unknown(rate: Rate) -> str:
    return f" (not known: {', '.join(rate.unknown)})" if rate.unknown else ""
