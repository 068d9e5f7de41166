"""The health of an application: its state, a level, and one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum

from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.bridge_progress import AT_WORK, JOB
from kafka_rescale.core.expansion.pause_alert import is_still_down
from kafka_rescale.core.expansion.silent_jobs import told_silent
from kafka_rescale.core.expansion.waiting_jobs import told_waiting
from kafka_rescale.core.values import Value
from kafka_rescale.core.verify.report import is_about, remedy_beside_copies

NOBODY = frozenset({"Empty", "Dead"})
"""The states of a group that is known to have no member. In another state, members may not be known."""


class State(StrEnum):
    """The state of an application."""

    RUNNING = "running"
    RESCALING = "rescaling"
    PAUSED = "paused"
    STOPPED = "stopped"
    UNKNOWN = "unknown"


class Level(StrEnum):
    """The level of a state: it says whether a user has to look."""

    GOOD = "good"
    WORKING = "working"
    ATTENTION = "attention"
    BAD = "bad"


class Health(Value):
    """An application's state and level, and the reason for both in words."""

    state: State
    level: Level
    reason: str


def health_of(
    control: ControlState, group: GroupDescription, *, now_ms: int = 0, max_pause_seconds: float = math.inf
) -> Health:
    """Return the health of an application.

    :param control: the control state, ``with_silent_jobs``.
    :param group: the group of the generation that owns the inputs.
    :param now_ms: wall clock, in ms since the epoch.
    :param max_pause_seconds: after how long a cutover at work has promoted or rolled back.
    """
    journal = control.journal
    state = _state(journal, group)
    if (wrong := _wrong(control, group, now_ms, max_pause_seconds)) is not None:
        return Health(state=state, level=wrong[0], reason=wrong[1])
    if state in {State.RESCALING, State.PAUSED} and journal is not None:
        return Health(state=state, level=Level.WORKING, reason=_doing(journal))
    if state is State.STOPPED:
        return Health(state=state, level=Level.ATTENTION, reason=_absent(group))
    members = len(group.members)
    return Health(
        state=state, level=Level.GOOD, reason=f"Group {group.state} with {members} member{'s' * (members != 1)}."
    )


def unreachable(reason: str) -> Health:
    """Return the health of an application that can't be read.

    :param reason: the error in words.
    """
    return Health(state=State.UNKNOWN, level=Level.BAD, reason=reason)


def failed_jobs(control: ControlState) -> list[str]:
    """Return a sentence for each job of the run in progress that has failed."""
    if control.journal is None:
        return []
    failed = [r for r in control.results.values() if r.state == "failed" and r.run == control.journal.owner]
    return [f"{r.job} has failed: {r.detail}" for r in failed]


def _state(journal: Journal | None, group: GroupDescription) -> State:
    if journal is not None and journal.in_progress:
        is_paused = journal.is_paused or is_still_down(journal, is_live=group.is_live)
        return State.PAUSED if is_paused else State.RESCALING
    return State.RUNNING if group.is_live else State.STOPPED


def _wrong(
    control: ControlState, group: GroupDescription, now_ms: int, max_pause_seconds: float
) -> tuple[Level, str] | None:
    journal = control.journal
    if journal is None:
        return None
    plan = journal.plan
    if control.report.get("passed") is False and is_about(control.report, journal):
        if remedy := remedy_beside_copies(control.report):
            return (
                Level.BAD,
                f"The verification has findings, none about the copies: let {plan.green} run. {remedy}",
            )
        return Level.BAD, f"The verification has findings: stop {plan.green}, and look at its report."
    seconds = (now_ms - journal.pause_started_ms) / 1000
    is_down = is_still_down(journal, is_live=group.is_live) and not journal.is_promoted
    if is_down and seconds > max_pause_seconds:
        return Level.ATTENTION, _overdue(control, journal, seconds, max_pause_seconds)
    needed = " ".join(_needed(control, journal, group, now_ms - max_pause_seconds * 1000))
    return (Level.ATTENTION, needed) if needed else None


def _needed(control: ControlState, journal: Journal, group: GroupDescription, late_ms: float) -> Iterator[str]:
    """Yield why a person is needed, the worst first. A sentence that quotes a reason ends with it, so it is last.

    :param late_ms: a next generation that was there before this time has had enough time to join its group.
    """
    if _should_be_up(journal, late_ms) and group.state in NOBODY and not group.is_live:
        yield _absent(group)
    if bridge := _bridge_away(control):
        yield bridge
    yield from told_silent(control)
    yield from told_waiting(control)
    if journal.phase is Phase.ROLLED_BACK:
        text = "The last expansion was rolled back; trigger it again to go on with its copies."
        yield f"{text}{_why(journal)}"
    elif journal.in_progress and (stuck := _stuck(control)):
        yield stuck


def _should_be_up(journal: Journal, late_ms: float) -> bool:
    """Return whether nobody is expected to be down: neither within the pause nor until green first works."""
    if not journal.is_promoted:
        return journal.phase in {Phase.WARMING, Phase.ROLLED_BACK}
    has_worked = "restore" in journal.timings
    return not journal.is_paused and (has_worked or journal.changed_at_ms < late_ms)


def _absent(group: GroupDescription) -> str:
    return f"Group {group.group_id} has no member ({group.state})."


def _bridge_away(control: ControlState) -> str:
    """Return what to do if records wait for a bridge that is not at work. Green's own lag does not show them."""
    journal, result = control.bridging, control.results.get(JOB)
    if journal is None or not journal.plan.bridges or result is None or result.state in AT_WORK:
        return ""
    if not journal.is_promoted or journal.is_paused:
        # Before the promotion it has nothing to carry on. Within the pause it only gives signs of life.
        return ""
    has_ended = Bridge.of(journal.plan, control.bridge_of(journal)).ended_at_ms
    left = sum(each.left for each in result.partitions)
    if has_ended and not left:
        return ""
    old = ", ".join(move.source for move in journal.plan.bridges)
    why = f": {result.detail}" if result.detail else ""
    return (
        f"The bridge is not at work ({result.state}{why}), and {left:,} records wait in {old}: look at "
        f"bridge_{journal.plan.application}, which may be paused. Retention deletes them some day."
    )


def _overdue(control: ControlState, journal: Journal, seconds: float, limit: float) -> str:
    """Return what to look at: the lease alone does not say whether its run is still at work."""
    late = f"Paused for {seconds:.0f} s, longer than max_pause_seconds of the file ({limit:.0f})"
    again = f"is not at work, trigger rollback_{journal.plan.application}."
    if journal.phase is Phase.ROLLING_BACK:
        # Whoever has the lease by now rolls back, and not always the run that has begun the expansion.
        holder = (control.lease and control.lease.holder) or "its run"
        return f"{late}, and {journal.plan.blue} does not run again. If {holder} {again}{_why(journal)}"
    return f"{late}, and not promoted. A run may have a longer limit. If {journal.owner} {again}"


def _stuck(control: ControlState) -> str:
    if failed := failed_jobs(control):
        return failed[-1]
    if control.lease is None or control.lease.released:
        return "An expansion is in progress, and no run holds the lease: trigger it again."
    return ""


def _doing(journal: Journal) -> str:
    way = f"to {journal.plan.partitions} partitions{', in place' if journal.plan.is_in_place else ''}"
    again = f", attempt {journal.attempt}" if journal.attempt > 1 else ""
    return f"Expansion {way}: {journal.phase}{again}.{_why(journal)}"


def _why(journal: Journal) -> str:
    return f" Why: {journal.rollback_reason}" if journal.rollback_reason else ""
