"""Whether the switch may begin, what it waits for, and what three commands of people change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka_rescale.core.application.windows import CutoverWindows
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Order, Switch
from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.core.expansion.switch_wait import Standing, opening, span, switch_to_come, told, wait_of
from kafka_rescale.core.expansion.switch_words import IN_WINDOW, NOW, approved, moment_ms

from tests.support.plans import plan_for

HOUR, DAY = 3_600_000, 86_400_000
NIGHT = CutoverWindows(windows=("02:00-05:00",))
JOURNAL = Journal(plan=plan_for("shop"))


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


NOON = ms("2026-11-25 12:00")


def begun(windows: CutoverWindows | None = NIGHT, *, asks: bool = False, longest: int = 7 * DAY) -> Switch:
    return Switch.of(JOURNAL, None).begun(NOON, longest, windows, DAY, asks=asks)


def said(order: Order, windows: CutoverWindows | None = NIGHT, **words: Any) -> Switch:
    return begun(windows).said(order, "ada", NOON, **words)


def test_without_windows_and_words_it_begins_at_once() -> None:
    assert wait_of(begun(None), NOON).standing is Standing.OPEN


def test_outside_of_the_windows_it_waits_for_the_next_one() -> None:
    wait = wait_of(begun(), NOON)
    assert (wait.standing, wait.opens_ms) == (Standing.WAITS, ms("2026-11-26 02:00"))
    assert wait.why == "the next window begins Thu 26 Nov 02:00 UTC, in 14 h"
    assert wait_of(begun(), ms("2026-11-26 02:00")).standing is Standing.OPEN
    assert wait_of(begun(), ms("2026-11-26 05:00")).standing is Standing.WAITS


def test_a_window_that_is_open_now_lets_it_through() -> None:
    within = begun(CutoverWindows(windows=("11:00-13:00",)))
    assert wait_of(within, NOON) == wait_of(within, NOON)
    assert wait_of(within, NOON).why == "a window is open (11:00-13:00 UTC)"


def test_now_means_now_whatever_the_windows_are() -> None:
    wait = wait_of(said(Order.NOW, reason="the night shift is ill"), NOON)
    assert (wait.standing, wait.why) == (Standing.OPEN, "ada has said so (the night shift is ill)")


def test_a_time_of_the_approval_counts_whatever_the_windows_are() -> None:
    at = said(Order.NOW, not_before_ms=ms("2026-11-25 18:00"))
    assert wait_of(at, NOON).why == "ada has said Wed 25 Nov 2026 18:00 UTC, in 6 h"
    assert wait_of(at, ms("2026-11-25 18:00")).standing is Standing.OPEN


def test_postponed_to_a_time_it_waits_for_the_next_window_behind_it() -> None:
    postponed = said(Order.WINDOW, not_before_ms=ms("2026-11-26 03:30"))
    assert opening(postponed, NOON) == ms("2026-11-26 03:30"), "a window is open then"
    later = said(Order.WINDOW, not_before_ms=ms("2026-11-26 06:00"))
    assert wait_of(later, ms("2026-11-26 02:30")).opens_ms == ms("2026-11-27 02:00")
    assert "ada has postponed it to Thu 26 Nov 2026 06:00 UTC; the next window" in wait_of(later, NOON).why
    without = said(Order.WINDOW, None, not_before_ms=ms("2026-11-26 06:00"))
    assert opening(without, NOON) == ms("2026-11-26 06:00")


def test_postponed_without_a_time_it_waits_for_another_word_through_every_window() -> None:
    held = said(Order.HOLD, reason="a release")
    for now in (NOON, ms("2026-11-26 03:00"), ms("2026-12-01 03:00")):
        assert (wait_of(held, now).standing, wait_of(held, now).opens_ms) == (Standing.WAITS, None)
    assert "ada has postponed it (a release), until a person says `cut-over-now`" in wait_of(held, NOON).why
    assert wait_of(held.said(Order.NOW, "bob", NOON), NOON).standing is Standing.OPEN


def test_a_wait_has_an_end_which_the_windows_behind_it_do_not_move() -> None:
    short = begun(longest=10 * HOUR)
    wait = wait_of(short, NOON)
    assert (wait.standing, wait.opens_ms) == (Standing.WAITS, None), "none is left before the limit"
    assert "is behind the end of the wait; say `cut-over-now`, or another time" in wait.why
    assert wait_of(short, NOON + 10 * HOUR).standing is Standing.EXPIRED
    assert wait_of(said(Order.HOLD), NOON + 7 * DAY).standing is Standing.EXPIRED


def test_a_moment_that_has_come_counts_more_than_a_limit_that_has_passed() -> None:
    """This can happen after an outage of Airflow."""
    assert wait_of(said(Order.NOW), NOON + 8 * DAY).standing is Standing.OPEN
    assert wait_of(begun(), ms("2026-12-20 02:00")).standing is Standing.OPEN


def test_cancelled_it_never_begins_and_no_later_word_changes_that() -> None:
    over = said(Order.CANCEL, reason="wrong count")
    assert wait_of(over, ms("2026-11-26 03:00")).standing is Standing.CANCELLED
    assert told(over, NOON) == "There will be no switch: ada has cancelled it (wrong count)."
    for order in Order:
        with pytest.raises(Refused, match="ada has cancelled"):
            over.said(order, "bob", NOON)


def test_what_was_let_through_is_the_cutovers() -> None:
    through = begun(None).released(NOON)
    with pytest.raises(Refused, match="rollback_<application>"):
        through.said(Order.CANCEL, "bob", NOON)


def test_a_task_that_waits_again_decides_anew() -> None:
    again = begun().released(NOON).begun(NOON + HOUR, 7 * DAY, NIGHT, DAY, asks=True)
    assert (again.released_ms, again.since_ms) == (0, NOON)
    assert again.said(Order.HOLD, "ada", NOON).order is Order.HOLD


def test_for_the_next_run_a_switch_stays_postponed_and_nothing_else() -> None:
    fresh = Switch.of(JOURNAL, None)
    for order in (Order.NOW, Order.CANCEL):
        assert said(order).released(NOON).of_next_run() == fresh, "said about the former run"
    for order, until in ((Order.HOLD, 0), (Order.WINDOW, NOON + DAY)):
        postponed = said(order, not_before_ms=until, reason="a release").of_next_run()
        assert postponed == fresh.said(order, "ada", NOON, not_before_ms=until, reason="a release")
        assert (postponed.until_ms, postponed.windows) == (0, None), "of the next run's file"


def test_the_limit_counts_from_the_first_time_that_the_copies_were_ready() -> None:
    again = begun(asks=True).begun(NOON + HOUR, 2 * DAY, None, None, asks=False)
    assert (again.since_ms, again.until_ms) == (NOON, NOON + 2 * DAY)
    assert (again.windows, again.asked) == (None, False)


def test_a_word_from_before_the_copies_were_ready_counts_by_then() -> None:
    early = Switch.of(JOURNAL, None).said(Order.HOLD, "ada", NOON)
    assert told(early, NOON).startswith("The copies are not ready for the switch yet. By then: ada has postponed")
    ready = early.begun(NOON, DAY, NIGHT, DAY, asks=False)
    assert wait_of(ready, ms("2026-11-26 03:00")).standing is Standing.WAITS


def test_it_is_told_how_long_the_copies_are_kept_near_and_what_ends_that() -> None:
    text = told(begun(), NOON)
    assert text == (
        "The switch waits: the next window begins Thu 26 Nov 02:00 UTC, in 14 h. The copies are kept near until "
        "Wed 02 Dec 2026 12:00 UTC, for 7 d more (`max_wait_seconds`). If nothing copies for 1 d "
        "(`delete.retention.ms`), they begin anew."
    )
    in_place = begun().model_copy(update={"tombstone_ms": None})
    assert "copies" not in told(in_place, NOON)
    asked = told(begun(asks=True), NOON)
    assert asked.startswith("A person is asked to approve the switch. After that: the next window begins")
    cancelled = begun(asks=True).said(Order.CANCEL, "ada", NOON)
    assert told(cancelled, NOON).endswith("The run still waits for its approval: reject it.")


@pytest.mark.parametrize("phase", list(Phase))
def test_it_is_shown_until_the_application_is_stopped(phase: Phase) -> None:
    state = ControlState(journal=Journal(plan=JOURNAL.plan, phase=phase), switch=begun())
    assert (switch_to_come(state) is not None) == (phase is Phase.WARMING)


def test_the_record_of_another_attempt_or_plan_does_not_count() -> None:
    cancelled = said(Order.CANCEL)
    assert Switch.of(JOURNAL, cancelled) == cancelled
    for other in (JOURNAL.model_copy(update={"attempt": 2}), Journal(plan=plan_for("another"))):
        assert Switch.of(other, cancelled).order is Order.WINDOW
        assert switch_to_come(ControlState(journal=other, switch=cancelled)) is None
    assert switch_to_come(ControlState(journal=JOURNAL)) is None


@given(st.sampled_from(list(Order)), st.integers(0, 30 * DAY), st.integers(0, 30 * DAY), st.booleans())
def test_whatever_was_said_it_opens_when_it_has_told_or_ends_at_its_limit(
    order: Order, not_before: int, later: int, declared: bool
) -> None:
    windows = NIGHT if declared else None
    at = NOON + not_before if not_before and order in {Order.NOW, Order.WINDOW} else 0
    switch = said(order, windows, not_before_ms=at)
    wait = wait_of(switch, NOON + later)
    assert (wait.standing is Standing.CANCELLED) == (order is Order.CANCEL)
    if wait.standing is Standing.WAITS and wait.opens_ms is not None:
        assert wait.opens_ms < switch.until_ms
        assert wait_of(switch, wait.opens_ms - 1).standing is Standing.WAITS
        assert wait_of(switch, wait.opens_ms).standing is Standing.OPEN
    if wait.standing is Standing.WAITS:
        assert NOON + later < switch.until_ms


@pytest.mark.parametrize(
    ("answer", "order", "at"),
    [
        ({}, Order.WINDOW, 0),
        ({"when": IN_WINDOW, "at": None}, Order.WINDOW, 0),
        ({"when": NOW, "at": ""}, Order.NOW, 0),
        ({"when": IN_WINDOW, "at": "2026-11-26T18:00:00Z"}, Order.NOW, ms("2026-11-26 18:00")),
        ({"at": "2026-11-26T18:00"}, Order.NOW, ms("2026-11-26 17:00")),
        ({"at": "tonight"}, Order.HOLD, 0),
    ],
)
def test_an_approval_says_now_a_window_or_a_time(answer: dict[str, Any], order: Order, at: int) -> None:
    """A time that can't be read discards nothing: the switch waits for another order."""
    berlin = CutoverWindows(windows=("02:00-05:00",), time_zone="Europe/Berlin")
    found = approved(answer, berlin)
    assert found[:2] == (order, at)
    assert bool(found[2]) == (order is Order.HOLD)


def test_a_time_without_an_offset_is_one_of_the_windows_zone_or_utc() -> None:
    assert moment_ms("2026-07-01 02:00", None) == ms("2026-07-01 02:00")
    berlin = CutoverWindows(windows=("02:00-05:00",), time_zone="Europe/Berlin")
    assert moment_ms("2026-07-01 02:00", berlin) == ms("2026-07-01 00:00")
    assert moment_ms("2026-07-01T02:00+05:30", berlin) == ms("2026-06-30 20:30")
    with pytest.raises(InvalidInput, match="such as 2026-11-29T02:00"):
        moment_ms("02:00", berlin)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (61, "1 min 1 s"), (3_661, "1 h 1 min"), (90_061, "1 d 1 h")],
)
def test_a_time_is_told_in_its_two_largest_units(seconds: int, text: str) -> None:
    assert span(seconds * 1000) == text
