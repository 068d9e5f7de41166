"""Every attempt that ends leaves one record. The oldest records are deleted, and unknown values stay unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kafka_rescale.core.control.history import MOST, PastExpansion, newest_first, surplus
from kafka_rescale.core.control.job_results import JobResult, Worked
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.records import ControlRecords
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Order, Switch
from kafka_rescale.core.page.history import HEADER, history_rows, pause_text
from kafka_rescale.core.plan.prediction import Prediction
from kafka_rescale.core.verify.kept import kept_of

from tests.support.expansion.control_states import after
from tests.support.situations import situation

PLAN = situation().plan
TIMINGS = {"quiesce": 1.0, "start": 5.5, "total": 7.0}


def past(attempt: int, ended_ms: int, **changes: Any) -> PastExpansion:
    fields = {"plan": "p", "outcome": "complete", "blue": "a", "green": "a-g2", "in_place": False, "run": "r"}
    return PastExpansion(attempt=attempt, ended_ms=ended_ms, before=4, after=8, **{**fields, **changes})


def result(job: str, records: int, seconds: float) -> JobResult:
    return JobResult(
        job=job, run="expand/run-1", attempt=1, state="done", records=records, bytes=10 * records, seconds=seconds
    )


def ending(**changes: Any) -> ControlState:
    """The control state just before an attempt ends."""
    journal = Journal(
        plan=PLAN,
        phase=Phase.VERIFIED,
        owner="expand/run-1",
        begun_ms=1_000,
        triggered_by="ada (expand/run-1)",
        timings=TIMINGS,
        predicted=Prediction(records=900, copy_seconds=3.0, pause={"total": 6.0}),
    )
    results = [
        result("catch_up", 5, 9.0),
        result("gate_all", 0, 1.0),
        result("restore/2", 300, 2.0),
        result("restore/1", 600, 2.5),
    ]
    known = {"journal": journal, "results": {r.job: r for r in results}, **changes}
    return ControlState(**known)


def ended(state: ControlState, outcome: Phase, now_ms: int) -> ControlState:
    """The control state afterwards."""
    return after(state, kept_of(state, outcome, now_ms))


def test_an_attempt_keeps_who_how_long_how_much_and_what_was_predicted() -> None:
    said = Switch.of(ending().journal or Journal(plan=PLAN), None).said(Order.NOW, "grace (expand/run-1)", 2_000)
    (found,) = ended(ending(switch=said), Phase.COMPLETE, 61_000).history.values()
    assert (found.before, found.after, found.outcome) == (4, 8, "complete")
    assert (found.triggered_by, found.approved_by) == ("ada (expand/run-1)", "grace (expand/run-1)")
    assert [job.job for job in found.jobs] == ["restore/1", "restore/2", "catch_up"]
    assert found.restored == (900, 4.5)
    assert found.copied == (905, 9_050)
    assert found.seconds == 60.0
    assert pause_text(found) == "start 5.5 s, quiesce 1.0 s, between 0.5 s"
    (row,) = history_rows([found])
    shown = dict(zip(HEADER, row, strict=True))
    assert shown["pause (predicted)"] == "7.0 s (6.0 s)"
    assert shown["copy (predicted)"] == "4.5 s (3.0 s)"
    assert shown["took"] == "60.0 s"


def test_a_job_that_was_killed_keeps_what_its_earlier_tries_have_copied() -> None:
    tail = result("restore/1", 100_000, 60.0)
    tail = tail.model_copy(update={"before": Worked(records=900_000, bytes=9_000_000, seconds=3_600.0)})
    (found,) = ended(ending(results={tail.job: tail}), Phase.COMPLETE, 61_000).history.values()
    assert found.restored == (1_000_000, 3_660.0)
    assert found.copied == (1_000_000, 10_000_000)


def test_what_is_moved_in_place_counts_once() -> None:
    """The job leaves a result per stage, and one of all of them."""
    moved = [result("move/1", 30, 1.0), result("move/2", 12, 1.0), result("move", 42, 2.0)]
    (found,) = ended(ending(results={r.job: r for r in moved}), Phase.COMPLETE, 61_000).history.values()
    assert found.copied == (42, 420)


def test_an_approval_of_an_earlier_attempt_does_not_count() -> None:
    other = Switch(plan=PLAN.fingerprint, attempt=7, by="grace")
    (found,) = ended(ending(switch=other), Phase.COMPLETE, 61_000).history.values()
    assert found.approved_by == ""


def test_a_rollback_is_kept_with_its_reason_and_the_next_attempt_beside_it() -> None:
    journal = Journal(plan=PLAN, phase=Phase.ROLLING_BACK, rollback_reason="no more disk")
    state = ended(ending(journal=journal), Phase.ROLLED_BACK, 10_000)
    again = state.model_copy(update={"journal": journal.model_copy(update={"attempt": 2})})
    state = ended(again, Phase.COMPLETE, 20_000)
    assert [(each.attempt, each.reason) for each in newest_first(state.history.values())] == [
        (2, "no more disk"),
        (1, "no more disk"),
    ]


def test_a_rollback_by_another_run_is_kept_with_this_run_and_its_person() -> None:
    journal = Journal(plan=PLAN, phase=Phase.ROLLING_BACK, owner="expand/run-1", stopped_by="ann")
    lease = Lease(owner="rollback/manual__x", epoch=2, target=8, expires_at_ms=0)
    (found,) = ended(ending(journal=journal, lease=lease), Phase.ROLLED_BACK, 10_000).history.values()
    assert (found.run, found.stopped_by) == ("rollback/manual__x", "ann")
    assert "stopped_by" not in past(1, 5).model_dump(), "an earlier version has none, and reads no field it lacks"


def test_the_end_that_is_recorded_twice_is_kept_once() -> None:
    once = ended(ending(), Phase.COMPLETE, 61_000)
    assert len(ended(once, Phase.COMPLETE, 62_000).history) == 1


def test_the_oldest_go_when_there_are_too_many() -> None:
    history = {each.key: each for each in (past(n, 1_000 + n) for n in range(MOST))}
    assert surplus(history, past(MOST, 9_000)) == ["p-0"]
    assert surplus(history, past(3, 9_000)) == []
    full = ended(ending(history=history), Phase.COMPLETE, 9_000).history
    assert len(full) == MOST
    assert "p-0" not in full
    assert min(each.ended_ms for each in full.values()) == 1_001


def test_attempts_that_fail_do_not_drive_out_the_last_complete_one_of_a_mode() -> None:
    """The next prediction is made from it."""
    history: dict[str, PastExpansion] = {}
    modes = {0: True, 1: True, 2: False}
    for n in range(MOST + 20):
        outcome = "complete" if n in modes else "rolled_back"
        coming = past(n, 1_000 + n, outcome=outcome, in_place=modes.get(n, False))
        for key in surplus(history, coming):
            del history[key]
        history[coming.key] = coming
    assert len(history) == MOST
    assert [each.key for each in newest_first(history.values())][-3:] == ["p-22", "p-2", "p-1"]
    assert surplus(history, past(MOST + 20, 9_000)) == ["p-2"], "a complete one of the same mode takes its place"


def test_each_has_a_key_of_its_own_which_an_older_version_ignores() -> None:
    (key,) = kept_of(ending(), Phase.COMPLETE, 1)
    assert key == f"{Concern.HISTORY}/{PLAN.fingerprint}-1"
    known = ControlRecords().state(
        {key: json.dumps(past(1, 5).model_dump(mode="json")).encode(), "to-come/x": b"{}"}
    )
    assert list(known.history) == [f"{PLAN.fingerprint}-1"]


def test_what_is_not_known_is_a_dash_and_no_number() -> None:
    (row,) = history_rows([past(1, 5)])
    shown = dict(zip(HEADER, row, strict=True))
    unknown = ("triggered by", "approved by", "took", "pause (predicted)", "copy (predicted)", "proven")
    assert [shown[name] for name in unknown] == [None] * len(unknown)
    (half,) = history_rows([past(1, 5, timings={"total": 2.0})])
    assert dict(zip(HEADER, half, strict=True))["pause (predicted)"] == "2.0 s (–)"


@pytest.mark.parametrize("moment", [0, 1])
def test_an_attempt_that_an_earlier_version_has_begun_has_no_duration(moment: int) -> None:
    assert past(1, 61_000, begun_ms=1_000 * moment).seconds == (60.0 if moment else None)
