"""The wait for the switch in the control topic: what people may say, and when the cutover may begin."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.core.control.journal import AFTER_PROMOTION, BLUE_STOPPED, Journal, Phase
from kafka_rescale.core.control.pace import Instruction, Pace
from kafka_rescale.core.control.switch import Order, Switch
from kafka_rescale.core.errors import Fenced, InvalidInput, Refused, UnsafeState
from kafka_rescale.core.expansion.pacing_say import RESUME, said
from kafka_rescale.core.expansion.switch_words import ACTIONS, CANCEL, CUT_OVER_NOW, POSTPONE
from kafka_rescale.kafka.control import journal_store
from kafka_rescale.operations.expansion import switch as operation

from tests.support.expansion.waiting_switch import (
    CONNECTION,
    DAY,
    HOUR,
    NIGHTLY,
    NOON,
    OWNER,
    Control,
    app,
    say,
    through,
)
from tests.support.plans import in_place_plan

ANOTHER = "expand_orders-app/another"


def test_without_windows_a_run_is_let_through_at_once(control: Control) -> None:
    assert through().passes
    assert control.state.switch is not None
    assert control.state.switch.released_ms == NOON
    assert control.writes == 1


def test_an_unattended_run_obeys_the_windows(control: Control, clock: list[int]) -> None:
    found = through(cutover_windows=NIGHTLY)
    assert not found.passes
    assert "the next window begins Thu 26 Nov 02:00 UTC, in 14 h" in found.told
    assert "kept near until Wed 02 Dec 2026 12:00 UTC" in found.told
    assert "for 2 h (`delete.retention.ms`)" in found.told
    clock[0] += 14 * HOUR
    assert through(cutover_windows=NIGHTLY).passes


def test_a_run_that_waits_keeps_its_lease(control: Control) -> None:
    through(cutover_windows=NIGHTLY)
    assert control.state.lease is not None
    assert control.state.lease.expires_at_ms == NOON + DAY


def test_who_approves_for_a_window_waits_for_it_until_a_person_says_now(control: Control) -> None:
    application = app(cutover_windows=NIGHTLY)
    operation.begin_wait(application, CONNECTION, owner=OWNER, asks=True)
    operation.approve(application, CONNECTION, owner=OWNER, by="bob", order=Order.WINDOW, not_before_ms=0)
    assert control.state.switch is not None
    assert not control.state.switch.asked
    assert not through(cutover_windows=NIGHTLY).passes
    assert say(CUT_OVER_NOW, cutover_windows=NIGHTLY).startswith("The switch may begin: ada has said so.")
    assert through(cutover_windows=NIGHTLY).passes


def test_postponed_it_is_not_let_through_in_a_window_and_the_limit_stays(
    control: Control, clock: list[int]
) -> None:
    through(cutover_windows=NIGHTLY)
    say(POSTPONE, cutover_windows=NIGHTLY)
    clock[0] += 14 * HOUR
    assert not through(cutover_windows=NIGHTLY).passes
    say(POSTPONE, "2026-11-27T06:00", cutover_windows=NIGHTLY)
    clock[0] = NOON + 46 * HOUR - 1
    assert not through(cutover_windows=NIGHTLY).passes
    assert control.state.switch is not None
    assert control.state.switch.until_ms == NOON + 7 * DAY
    clock[0] = NOON + (24 + 24 + 14) * HOUR
    assert through(cutover_windows=NIGHTLY).passes


def test_cancelled_the_run_ends_and_says_who_has_cancelled(control: Control, clock: list[int]) -> None:
    through(cutover_windows=NIGHTLY)
    say(CANCEL, cutover_windows=NIGHTLY)
    clock[0] += 14 * HOUR
    with pytest.raises(UnsafeState, match=r"ada has cancelled it.*the copies stay"):
        through(cutover_windows=NIGHTLY)
    with pytest.raises(UnsafeState, match="ada has cancelled"):
        operation.begin_wait(app(), CONNECTION, owner=OWNER, asks=True)
    with pytest.raises(Refused, match="ada has cancelled"):
        operation.approve(app(), CONNECTION, owner=OWNER, by="bob", order=Order.NOW, not_before_ms=0)


@pytest.mark.parametrize(
    ("action", "enabled", "told"), [(CANCEL, True, 1), (CANCEL, False, 0), (POSTPONE, True, 0)]
)
def test_who_cancels_while_autoscaling_is_on_is_told_that_it_asks_again(
    control: Control, action: str, enabled: bool, told: int
) -> None:
    said = say(action, **{"partition.autoscaling.enabled": enabled})
    assert said.count("asks for it again within 2 minutes, and then waits for approval. Pause the watch") == told


def test_a_word_that_comes_while_it_is_let_through_is_either_heard_or_refused(control: Control) -> None:
    control.before_write = lambda: print(say(CANCEL))
    with pytest.raises(UnsafeState, match="ada has cancelled"):
        through()


@pytest.mark.parametrize("action", ACTIONS)
def test_a_word_that_comes_too_late_is_refused_and_writes_nothing(control: Control, action: str) -> None:
    through()
    before = control.writes
    with pytest.raises(Refused, match=r"let through.*rollback_<application>"):
        say(action)
    assert control.writes == before


@pytest.mark.parametrize("phase", [None, *(phase for phase in Phase if phase is not Phase.WARMING)])
def test_no_word_counts_where_no_switch_is_to_come(control: Control, phase: Phase | None) -> None:
    journal = control.state.journal and control.state.journal.model_copy(update={"phase": phase})
    control.state = control.state.model_copy(update={"journal": journal if phase else None})
    with pytest.raises(Refused, match="no expansion" if phase is None else f"phase {phase}"):
        say(POSTPONE)
    assert control.writes == 0


@pytest.mark.parametrize("until", ["2026-11-25T11:59", "2026-12-02T12:00", "2030-01-01T00:00"])
def test_a_time_in_the_past_or_behind_the_limit_is_refused(control: Control, until: str) -> None:
    through(cutover_windows=NIGHTLY)
    with pytest.raises(Refused, match=r"between now and Wed 02 Dec 2026 12:00 UTC.*raise `max_wait_seconds`"):
        say(POSTPONE, until, cutover_windows=NIGHTLY)
    with pytest.raises(InvalidInput):
        say(POSTPONE, "tonight")


def test_a_limit_that_was_raised_in_the_file_counts_with_the_next_word(control: Control) -> None:
    through(cutover_windows=NIGHTLY)
    raised = {"cutover_windows": NIGHTLY, "max_wait_seconds": 30 * 86_400}
    say(POSTPONE, "2026-12-20T00:00", **raised)
    assert control.state.switch is not None
    assert control.state.switch.until_ms == NOON + 30 * DAY


def test_a_wait_that_nobody_has_ended_ends_at_its_limit_and_its_copies_stay(
    control: Control, clock: list[int]
) -> None:
    through(cutover_windows=NIGHTLY)
    say(POSTPONE, cutover_windows=NIGHTLY)
    clock[0] += 7 * DAY
    with pytest.raises(UnsafeState, match=r"waited for until .*max_wait_seconds.*the copies stay"):
        through(cutover_windows=NIGHTLY)
    assert control.state.journal is not None
    assert control.state.journal.phase is Phase.WARMING, "only roll_back of the run closes the attempt"


def paused(control: Control, *, by: str = "ada") -> None:
    """Ada pauses the copy, or resumes it."""
    assert control.state.journal is not None
    word = Instruction(by=by, at_ms=NOON) if by else None
    pace = Pace(plan=control.state.journal.plan.fingerprint, paused=word)
    control.state = control.state.model_copy(update={"pace": pace})


def resumed(control: Control, at_ms: int) -> None:
    """Ada lets the copy go on."""
    word = Instruction(by="ada", at_ms=at_ms)
    control.state = control.state.model_copy(update={"pace": said(control.state, "orders-app", RESUME, word)})


@pytest.mark.parametrize("windows", [None, NIGHTLY], ids=["no windows", "a window is open"])
def test_a_pause_that_nobody_has_ended_ends_with_the_wait(
    control: Control, clock: list[int], windows: dict[str, Any] | None
) -> None:
    """Otherwise the run would wait for weeks, and begin its switch whenever somebody resumes the copy."""
    paused(control)
    clock[0] += 14 * HOUR
    found = through(cutover_windows=windows)
    assert not found.passes
    assert "the copy is paused by ada" in found.told
    clock[0] += 7 * DAY - 1
    assert not through(cutover_windows=windows).passes
    clock[0] += 1
    with pytest.raises(UnsafeState, match=r"max_wait_seconds; the copy is paused by ada.*the copies stay"):
        through(cutover_windows=windows)


@pytest.mark.parametrize("windows", [None, NIGHTLY], ids=["no windows", "a window is open"])
def test_a_copy_that_goes_on_behind_the_wait_begins_no_switch(
    control: Control, clock: list[int], windows: dict[str, Any] | None
) -> None:
    """Airflow was down at the end of the wait, so no task has ended it."""
    paused(control)
    through(cutover_windows=windows)
    clock[0] += 7 * DAY + 14 * HOUR
    resumed(control, clock[0])
    clock[0] += 1
    with pytest.raises(UnsafeState, match=r"max_wait_seconds; the copy went on behind that.*the copies stay"):
        through(cutover_windows=windows)
    assert control.state.switch is not None
    assert not control.state.switch.released_ms


def test_a_copy_that_went_on_before_the_end_of_the_wait_is_no_reason_to_end_it(
    control: Control, clock: list[int]
) -> None:
    paused(control)
    through()
    resumed(control, NOON + 7 * DAY - 1)
    clock[0] += 8 * DAY
    assert through().passes, "a moment that has come counts more than a limit that has passed"


def test_who_says_now_after_the_copy_goes_on_begins_the_switch(control: Control, clock: list[int]) -> None:
    paused(control)
    through()
    clock[0] += 8 * DAY
    resumed(control, clock[0])
    assert say(CUT_OVER_NOW).startswith("The switch may begin: ada has said so.")
    assert through().passes


def test_a_pause_that_comes_while_it_is_let_through_is_heard(control: Control) -> None:
    control.before_write = lambda: paused(control)
    found = through()
    assert not found.passes
    assert found.told.startswith("The switch waits: the copy is paused by ada")
    assert found.told.endswith("`resume` lets both go on.")
    paused(control, by="")
    assert through().passes


@pytest.mark.parametrize("phase", [*BLUE_STOPPED, *AFTER_PROMOTION])
def test_a_cutover_that_has_begun_is_never_waited_with(control: Control, phase: Phase) -> None:
    """A run that takes over an interrupted cutover has to end the pause, because perhaps nothing runs."""
    journal = control.state.journal
    assert journal is not None
    control.state = control.state.model_copy(update={"journal": journal.model_copy(update={"phase": phase})})
    assert through(cutover_windows=NIGHTLY).passes
    assert control.writes == 0


@pytest.mark.parametrize("phase", [Phase.ROLLING_BACK, Phase.ROLLED_BACK])
def test_an_attempt_that_was_rolled_back_is_not_let_through(control: Control, phase: Phase) -> None:
    journal = control.state.journal
    assert journal is not None
    control.state = control.state.model_copy(update={"journal": journal.model_copy(update={"phase": phase})})
    with pytest.raises(UnsafeState, match="expected an attempt in progress"):
        through()


def test_a_run_that_has_lost_its_lease_is_not_let_through(control: Control) -> None:
    with pytest.raises(Fenced):
        through(ANOTHER)


def test_a_task_that_was_killed_and_runs_again_neither_waits_longer_nor_asks_twice(
    control: Control, clock: list[int]
) -> None:
    first = operation.begin_wait(app(), CONNECTION, owner=OWNER, asks=True)
    clock[0] += DAY
    assert operation.begin_wait(app(), CONNECTION, owner=OWNER, asks=True).until_ms == first.until_ms
    assert through().passes
    clock[0] += DAY
    assert through().passes


def begun_again(control: Control, owner: str = ANOTHER) -> None:
    """Another run takes over the lease, and goes on with the attempt."""
    held, journal = control.state.lease, control.state.journal
    assert held is not None
    assert journal is not None
    lease = held.model_copy(update={"owner": owner, "epoch": 2})
    control.state = control.state.model_copy(update={"lease": lease})
    stand_in: Any = control
    assert journal_store.begin(stand_in, journal.plan, owner, now_ms=1).attempt == journal.attempt


def test_what_was_let_through_for_a_run_is_not_for_the_next_run(control: Control, clock: list[int]) -> None:
    """The cutover of the first run has stopped nothing yet when a person marks the run as failed."""
    clock[0] += 14 * HOUR
    assert through(cutover_windows=NIGHTLY).passes
    clock[0] += 10 * HOUR
    begun_again(control)
    found = through(ANOTHER, cutover_windows=NIGHTLY)
    assert not found.passes
    assert "the next window begins Fri 27 Nov 02:00 UTC, in 14 h" in found.told


@pytest.mark.parametrize("owner", [ANOTHER, OWNER], ids=["another run", "the run of a chain, once more"])
def test_the_next_run_asks_and_waits_by_itself(control: Control, clock: list[int], owner: str) -> None:
    through(cutover_windows=NIGHTLY)
    say(CUT_OVER_NOW, cutover_windows=NIGHTLY)
    assert through(cutover_windows=NIGHTLY).passes
    clock[0] += 8 * DAY
    begun_again(control, owner)
    application = app(cutover_windows=NIGHTLY)
    asked = operation.begin_wait(application, CONNECTION, owner=owner, asks=True)
    assert asked.until_ms == clock[0] + 7 * DAY
    operation.approve(application, CONNECTION, owner=owner, by="bob", order=Order.WINDOW, not_before_ms=0)
    assert not through(owner, cutover_windows=NIGHTLY).passes, "now was said about the run before"


def test_a_switch_that_was_postponed_stays_so_for_the_next_run(control: Control) -> None:
    say(POSTPONE)
    begun_again(control)
    found = through(ANOTHER)
    assert not found.passes
    assert "ada has postponed it, until a person says" in found.told
    say(CUT_OVER_NOW)
    assert through(ANOTHER).passes


def test_a_task_that_is_cleared_beside_a_cutover_that_waits_decides_by_the_present_time(
    control: Control, clock: list[int]
) -> None:
    clock[0] += 14 * HOUR
    application = app(cutover_windows=NIGHTLY)
    assert through(cutover_windows=NIGHTLY).passes
    clock[0] += 10 * HOUR
    assert not through(cutover_windows=NIGHTLY).passes, "only await_window was cleared"
    clock[0] += 14 * HOUR
    assert through(cutover_windows=NIGHTLY).passes
    operation.begin_wait(application, CONNECTION, owner=OWNER, asks=True)
    operation.approve(application, CONNECTION, owner=OWNER, by="bob", order=Order.HOLD, not_before_ms=0)
    assert not through(cutover_windows=NIGHTLY).passes


def test_in_place_nothing_is_copied_that_an_interruption_could_harm(control: Control) -> None:
    control.state = control.state.model_copy(update={"journal": Journal(plan=in_place_plan())})
    found = through(cutover_windows=NIGHTLY)
    assert "delete.retention.ms" not in found.told
    assert "It is waited for until" in found.told


def test_the_record_goes_to_json_and_back(control: Control) -> None:
    through(cutover_windows=NIGHTLY)
    switch = control.state.switch
    assert switch is not None
    assert Switch.model_validate_json(switch.model_dump_json()) == switch
