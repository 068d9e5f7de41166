"""What a person may order about the pace, and when."""

from __future__ import annotations

from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.pace import Instruction, Pace
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Switch
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.expansion.late_words import assert_about, assert_last

LIMIT, PAUSE, RESUME = "limit", "pause", "resume"
ACTIONS = (LIMIT, PAUSE, RESUME)


def said(state: ControlState, application: str, action: str, word: Instruction, limit: int | None = None) -> Pace:
    """Return the pace of the expansion in progress after a person's order.

    A pause of a copy that is paused, and a resume of a copy that goes on, change nothing. The order may have been
    written before, and only its answer got lost.

    :param application: name for errors.
    :param action: one of ``ACTIONS``.
    :param limit: for the action ``limit``: bytes per second, or None for no limit.
    :raises Refused: nothing is copied, the application is stopped or is about to be stopped, or the attempt or
        another person's word is younger than this one.
    """
    journal = _copying(state, application)
    known = Pace.of(journal.plan.fingerprint, state.pace)
    what, asked_ms = f"pace of {application}", word.asked_for_ms or None
    if action != RESUME:
        # A pause holds for all attempts at a plan, so whoever ends it means the next attempt as well.
        assert_about(what, journal, asked_ms)

    def replaces(last: Instruction | None) -> None:
        if last is not None:
            assert_last(what, word.by, asked_ms, last)

    if action == LIMIT:
        replaces(known.limited)
        return known.model_copy(update={"limit": limit, "limited": word})
    if action == RESUME:
        if known.paused is None:
            return known
        replaces(known.paused)
        return known.model_copy(update={"paused": None, "resumed": word})
    _assert_may_pause(state, journal, application)
    if known.paused is not None:
        return known
    replaces(known.resumed)
    return known.model_copy(update={"paused": word, "resumed": None})


def _copying(state: ControlState, application: str) -> Journal:
    """Return the journal of an expansion that copies beside its application.

    :raises Refused: there is no such expansion.
    """
    journal = state.journal
    if journal is None or journal.phase is Phase.ROLLED_BACK or is_over(state, journal):
        raise Refused(
            f"pace of {application}",
            found="no expansion" if journal is None else f"nothing to copy, phase {journal.told}",
            expected="an expansion that copies",
            remedy="Nothing has been changed. `pacing` in the application file limits the next expansion.",
        )
    if journal.plan.is_in_place:
        raise Refused(
            f"pace of {application}",
            found="an expansion in place",
            expected="an expansion that copies beside the application",
            remedy="Nothing has been changed. In place, records only move while the application is stopped, and "
            "then only speed matters.",
        )
    return journal


def is_over(state: ControlState, journal: Journal) -> bool:
    """Return whether the expansion was promoted and has no bridge at work, so that nothing is copied any more."""
    if not journal.is_promoted:
        return False
    return not journal.plan.bridges or bool(Bridge.of(journal.plan, state.bridge).ended_at_ms)


def _assert_may_pause(state: ControlState, journal: Journal, application: str) -> None:
    is_released = not journal.is_promoted and Switch.of(journal, state.switch).released_ms > 0
    if not is_released and not journal.is_paused:
        return
    stopped = f"a stopped application, phase {journal.told}"
    raise Refused(
        f"pause of the copy of {application}",
        found=stopped if journal.is_paused else "a cutover that has been let through",
        expected="a running application",
        remedy="Nothing has been changed: while the application is stopped, the copy has no limit, because only "
        "speed matters. Until the promotion, `rollback_<application>` starts the application again as it was.",
    )
