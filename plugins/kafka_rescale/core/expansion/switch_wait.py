"""May the switch begin now, and if not, what does it wait for, and for how long at most?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from kafka_rescale.core.application.windows import local_time
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Order, Switch
from kafka_rescale.core.plan.plan import Plan


class Standing(StrEnum):
    """The answer at one moment. ``stopped``: the moment has come, but nothing is copied."""

    OPEN = "open"
    WAITS = "waits"
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


@dataclass(frozen=True)
class Wait:
    """The answer, and its reason.

    :param opens_ms: when the switch may begin without an order; None if only a person's order can let it begin
        within the limit.
    :param why: what the switch waits for, or why it waits no longer, in a sentence.
    """

    standing: Standing
    opens_ms: int | None
    why: str


_SAID = {
    Standing.OPEN: "The switch may begin",
    Standing.WAITS: "The switch waits",
    Standing.EXPIRED: "The wait for the switch has ended",
}


def wait_of(switch: Switch, now_ms: int, stop: str = "", resumed_ms: int = 0) -> Wait:
    """Return whether the switch may begin.

    If both the moment to begin and the limit of the wait have passed, the switch may begin. The copies are ready
    by then, or the cutover refuses them. While nothing is copied, it may not begin, and the limit counts: whoever
    lets the copy go on behind the limit does not begin a switch at that hour, even if no task looked at the limit
    meanwhile. A person's "now" that is younger than that does.

    :param now_ms: wall clock, in ms since the epoch.
    :param stop: why nothing is copied; empty if the copy goes on.
    :param resumed_ms: when a person has ended the last pause of the copy; 0 if nobody has.
    """
    if switch.order is Order.CANCEL:
        return Wait(Standing.CANCELLED, None, f"{switch.by} has cancelled it{because(switch.reason)}")
    opens = opening(switch, now_ms)
    has_come = opens is not None and opens <= now_ms
    is_over = switch.has_begun and now_ms >= switch.until_ms
    was_stopped = is_over and resumed_ms >= switch.until_ms and not _is_now_since(switch, resumed_ms)
    if has_come and not stop and not was_stopped:
        return Wait(Standing.OPEN, opens, _why_open(switch))
    if is_over:
        over = f"it was waited for until {utc(switch.until_ms)}, max_wait_seconds"
        late = f"the copy is {stop}" if stop else "the copy went on behind that" if was_stopped else ""
        return Wait(Standing.EXPIRED, None, "; ".join(filter(None, [over, late])))
    if has_come:
        return Wait(Standing.STOPPED, opens, f"the copy is {stop}")
    if switch.has_begun and opens is not None and opens >= switch.until_ms:
        late = f"{_next(switch, opens)} is behind the end of the wait; say `cut-over-now`, or another time"
        return Wait(Standing.WAITS, None, late)
    why = f"{_next(switch, opens)}, in {span(opens - now_ms)}" if opens is not None else _held(switch)
    return Wait(Standing.WAITS, opens, why)


def opening(switch: Switch, now_ms: int) -> int | None:
    """Return when the switch may begin without a further order; None if only a person's order can let it begin."""
    if switch.order is Order.HOLD:
        return None
    earliest = max(now_ms, switch.not_before_ms)
    if switch.order is Order.NOW or switch.windows is None:
        return earliest
    return switch.windows.opens_ms(earliest)


def told_switch(control: ControlState, now_ms: int) -> str:
    """Return what the switch of the expansion in progress waits for; empty if no switch is to come."""
    switch = switch_to_come(control)
    if switch is None:
        return ""
    restoring = control.journal is not None and control.journal.beside_copy
    first = (
        "The new generation restores what was copied since it was warm, before its switch. " if restoring else ""
    )
    return first + told(switch, now_ms)


def told(switch: Switch, now_ms: int) -> str:
    """Return the wait in a few sentences, for the page, the status and the log."""
    wait = wait_of(switch, now_ms)
    if switch.released_ms:
        return f"The switch was let through at {utc(switch.released_ms)}."
    if not switch.has_begun:
        return f"The copies are not ready for the switch yet. By then: {wait.why}."
    if wait.standing is Standing.CANCELLED:
        asked = " The run still waits for its approval: reject it." if switch.asked else ""
        return f"There will be no switch: {wait.why}.{asked}"
    if switch.asked:
        first = f"A person is asked to approve the switch. After that: {after_approval(switch, now_ms)}."
    else:
        first = f"{_SAID[wait.standing]}: {wait.why}."
    return " ".join([first, *kept_near(switch, now_ms)])


def after_approval(switch: Switch, now_ms: int) -> str:
    """Return when the switch begins if the approval names neither a time nor "now"."""
    why = wait_of(switch.approved(switch.by, now_ms), now_ms).why
    if switch.order is Order.NOW and not switch.not_before_ms and switch.windows is not None:
        return f"{why}; {switch.by} has said `cut over now`: answer `now` for that"
    return why


def switch_to_come(control: ControlState) -> Switch | None:
    """Return the switch of the expansion in progress until its application is stopped; None without a switch."""
    journal, found = control.journal, control.switch
    if journal is None or journal.phase is not Phase.WARMING or found is None:
        return None
    switch = Switch.of(journal, found)
    return switch if switch.has_begun or switch.by else None


def copied_topics(plan: Plan) -> list[str]:
    """Return the changelogs that are copied while the run waits for the switch; in place, there are none."""
    return [] if plan.is_in_place else [move.source for move in plan.changelogs]


def kept_near(switch: Switch, now_ms: int) -> Iterator[str]:
    """Yield how long the copies are kept near, and what an interruption may cost."""
    left = span(switch.until_ms - now_ms)
    what = "It is waited for" if switch.tombstone_ms is None else "The copies are kept near"
    yield f"{what} until {utc(switch.until_ms)}, for {left} more (`max_wait_seconds`)."
    if switch.tombstone_ms is not None:
        yield f"If nothing copies for {span(switch.tombstone_ms)} (`delete.retention.ms`), they begin anew."


def span(ms: int) -> str:
    """Return a time in its two largest units."""
    seconds = max(0, round(ms / 1000))
    units = [
        (seconds // 86_400, "d"),
        (seconds // 3600 % 24, "h"),
        (seconds // 60 % 60, "min"),
        (seconds % 60, "s"),
    ]
    first = next((n for n, (value, _) in enumerate(units) if value), 0)
    return " ".join(f"{value} {unit}" for value, unit in units[first : first + 2] if value) or "0 s"


def utc(at_ms: int) -> str:
    """Return a moment to the minute."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%a %d %b %Y %H:%M} UTC"


def _is_now_since(switch: Switch, at_ms: int) -> bool:
    return switch.order is Order.NOW and switch.at_ms >= at_ms


def _why_open(switch: Switch) -> str:
    if switch.order is Order.NOW:
        return f"{switch.by} has said so{because(switch.reason)}"
    return f"a window is open ({switch.windows})" if switch.windows else "there are no windows to wait for"


def _next(switch: Switch, opens_ms: int) -> str:
    if switch.windows is None or switch.order is Order.NOW:
        return f"{switch.by} has said {utc(opens_ms)}"
    local = local_time(switch.windows.time_zone, opens_ms)
    postponed = f"{switch.by} has postponed it to {utc(switch.not_before_ms)}; " if switch.not_before_ms else ""
    return f"{postponed}the next window begins {local:%a %d %b %H:%M} {switch.windows.time_zone}"


def _held(switch: Switch) -> str:
    said = f"{switch.by} has postponed it{because(switch.reason)}"
    return f"{said}, until a person says `cut-over-now` or another time"


def because(reason: str) -> str:
    """Return a person's reason in brackets, to be put behind what the person has said; empty without one."""
    return f" ({reason})" if reason else ""
