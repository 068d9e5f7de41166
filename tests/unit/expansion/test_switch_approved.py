"""What an approval means beside the words of others: it never begins the switch earlier than its question says."""

from __future__ import annotations

import pytest
from kafka_rescale.airflow.markdown import waiting_markdown
from kafka_rescale.core.control.switch import Order
from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.core.expansion.switch_words import CANCEL, CUT_OVER_NOW, POSTPONE
from kafka_rescale.kafka.control import journal_store

from tests.support.expansion.waiting_switch import (
    DAY,
    HOUR,
    NIGHTLY,
    NOON,
    OWNER,
    Control,
    approve,
    ask,
    say,
    through,
)

WINDOWS = pytest.mark.parametrize("windows", [None, NIGHTLY, {"windows": ["11:00-13:00"]}], ids=str)


def question(control: Control, now_ms: int = NOON) -> str:
    assert control.state.switch is not None
    return waiting_markdown(control.state.switch, now_ms)


@WINDOWS
@pytest.mark.parametrize("is_asked", [False, True], ids=["in advance", "while it is asked"])
def test_a_postponement_outlives_an_approval_that_names_no_time(
    control: Control, windows: dict[str, list[str]] | None, is_asked: bool
) -> None:
    if is_asked:
        ask(cutover_windows=windows)
    say(POSTPONE, cutover_windows=windows)
    ask(cutover_windows=windows)
    assert "**If you approve** without another time: ada has postponed it, until a person" in question(control)
    approve(cutover_windows=windows)
    found = through(cutover_windows=windows)
    assert not found.passes
    assert "ada has postponed it, until a person says" in found.told
    assert "A person is asked" not in found.told
    say(CUT_OVER_NOW, cutover_windows=windows)
    assert through(cutover_windows=windows).passes


@WINDOWS
def test_a_postponement_to_a_time_outlives_it_too(
    control: Control, clock: list[int], windows: dict[str, list[str]] | None
) -> None:
    say(POSTPONE, "2026-11-27T11:30", cutover_windows=windows)
    ask(cutover_windows=windows)
    approve(cutover_windows=windows)
    clock[0] = NOON + 2 * DAY - HOUR // 2 - 1
    assert not through(cutover_windows=windows).passes
    clock[0] += 1
    assert through(cutover_windows=windows).passes == (windows != NIGHTLY)
    clock[0] = NOON + 2 * DAY + 14 * HOUR
    assert windows != NIGHTLY or through(cutover_windows=windows).passes


def test_a_postponement_of_the_run_before_outlives_the_approval_of_the_next_run(control: Control) -> None:
    say(POSTPONE)
    assert control.state.journal is not None
    journal_store.begin(control, control.state.journal.plan, OWNER, now_ms=NOON)  # type: ignore[arg-type]
    ask()
    approve()
    assert not through().passes


@pytest.mark.parametrize("is_asked", [False, True], ids=["in advance", "while it is asked"])
def test_cut_over_now_passes_over_no_window_that_the_approval_names(control: Control, is_asked: bool) -> None:
    """The form says "in the window". Who approves must not begin it at noon, and reads how to."""
    if is_asked:
        ask(cutover_windows=NIGHTLY)
    said = say(CUT_OVER_NOW, cutover_windows=NIGHTLY)
    ask(cutover_windows=NIGHTLY)
    told = (
        "the next window begins Thu 26 Nov 02:00 UTC, in 14 h; ada has said `cut over now`: answer `now` for that"
    )
    assert f"**If you approve** without another time: {told}." in question(control)
    assert (f"After that: {told}." in said) == is_asked
    approve(cutover_windows=NIGHTLY)
    assert not through(cutover_windows=NIGHTLY).passes
    say(CUT_OVER_NOW, cutover_windows=NIGHTLY)
    assert through(cutover_windows=NIGHTLY).passes


def test_who_approves_for_now_passes_over_what_others_have_said(control: Control) -> None:
    say(POSTPONE, cutover_windows=NIGHTLY)
    ask(cutover_windows=NIGHTLY)
    approve(Order.NOW, cutover_windows=NIGHTLY)
    assert through(cutover_windows=NIGHTLY).passes


def test_the_time_of_an_approval_that_is_asked_for_again_counts_with_the_windows(
    control: Control, clock: list[int]
) -> None:
    """A person has cleared the approval. The form says "in the window" once more."""
    ask(cutover_windows=NIGHTLY)
    approve(Order.NOW, NOON + 16 * HOUR, cutover_windows=NIGHTLY)
    ask(cutover_windows=NIGHTLY)
    assert "postponed it to Thu 26 Nov 2026 04:00 UTC; the next window begins" in question(control)
    approve(cutover_windows=NIGHTLY)
    clock[0] = NOON + 15 * HOUR
    assert not through(cutover_windows=NIGHTLY).passes, "in a window, but before the time"
    clock[0] = NOON + 18 * HOUR
    assert not through(cutover_windows=NIGHTLY).passes, "behind the time, but in no window"
    clock[0] = NOON + 40 * HOUR
    assert through(cutover_windows=NIGHTLY).passes


@pytest.mark.parametrize("order", [Order.WINDOW, Order.NOW])
def test_a_switch_that_was_cancelled_while_it_is_asked_takes_no_approval(control: Control, order: Order) -> None:
    ask()
    say(CANCEL)
    with pytest.raises(Refused, match="ada has cancelled"):
        approve(order)


@pytest.mark.parametrize("hours", [-10, 7 * 24, 30 * 24], ids=["past", "at the limit", "behind it"])
def test_a_time_that_is_past_or_behind_the_limit_begins_nothing(
    control: Control, caplog: pytest.LogCaptureFixture, hours: int
) -> None:
    """At noon somebody enters 02:00 of today instead of tomorrow's. That must not mean at once."""
    ask(cutover_windows=NIGHTLY)
    approve(Order.NOW, NOON + hours * HOUR, cutover_windows=NIGHTLY)
    found = through(cutover_windows=NIGHTLY)
    assert not found.passes
    assert "bob has postponed it (the approval says " in found.told
    assert "The switch waits for another order." in caplog.text
    say(CUT_OVER_NOW, cutover_windows=NIGHTLY)
    assert through(cutover_windows=NIGHTLY).passes


def test_a_time_that_was_ahead_when_a_person_named_it_counts_although_the_task_comes_late(
    control: Control, clock: list[int]
) -> None:
    ask()
    clock[0] += HOUR
    approve(Order.NOW, NOON + HOUR // 2, answered_ms=NOON)
    assert through().passes


@pytest.mark.parametrize("action", [CUT_OVER_NOW, CANCEL])
def test_a_time_beside_another_action_than_a_postponement_changes_nothing(control: Control, action: str) -> None:
    """Who gives a time does not mean at once."""
    ask()
    before = control.state.switch
    with pytest.raises(InvalidInput, match=rf"`{action}` with the time .* nothing was changed"):
        say(action, "2026-11-27T02:00")
    assert control.state.switch == before
