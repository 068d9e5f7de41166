"""A driver that died leaves a result that says running. Page and status must not show that for ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.pace import DiskRest, Instruction, Pace, Rate
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.pacing_words import told_pace
from kafka_rescale.core.expansion.silent_jobs import FIRST_SILENT_MS, SILENT_MS, with_silent_jobs
from kafka_rescale.core.page.health import Level
from kafka_rescale.core.page.page import ApplicationPage

from tests.support.page.page_contents import NOW_MS, RUN, World, copying, progress, result

OWNER = f"expand_orders/{RUN}"
FIVE_HOURS_MS = 5 * 3_600_000
REST = DiskRest(broker=3, path="/d", usable=1, copied=90, percent=10, enough=11, since_ms=NOW_MS)


def with_result(world: World, found: JobResult, **changes: Any) -> World:
    results = {**world.control.results, found.job: found}
    return replace(world, control=world.control.model_copy(update={"results": results, **changes}))


def aged(found: JobResult, ms: int, **changes: Any) -> JobResult:
    """Return this result as if its newest reading were so old."""
    ago = NOW_MS - ms - found.lags.samples[-1].at_ms
    samples = tuple(s.model_copy(update={"at_ms": s.at_ms + ago}) for s in found.lags.samples)
    return found.model_copy(update={"lags": found.lags.model_copy(update={"samples": samples}), **changes})


def copied(ms: int, **changes: Any) -> World:
    """An expansion whose copy has reported so long ago."""
    world = copying("orders")
    return with_result(world, aged(world.control.results["restore/2"], ms, **changes))


def once_reported(ms: int) -> JobResult:
    """A copy that has reported once, so long ago."""
    return aged(result("restore/2", "running", progress("t", 4, 90), 1), ms, run=OWNER)


def shown(page: ApplicationPage, job: str = "restore/2") -> Any:
    return next(each for each in page.jobs if each.job == job)


def test_a_dead_job_has_no_time_left_and_needs_a_person_who_is_told_where_to_look() -> None:
    page = copied(FIVE_HOURS_MS).page()
    job = shown(page)
    assert (job.state, job.eta_seconds) == ("not_at_work", None)
    assert job.detail == "no report for 5 h, its last one said running"
    assert job.share == pytest.approx(0.956, abs=0.01), "what is copied is copied"
    assert page.summary.health.level is Level.ATTENTION
    assert page.summary.health.reason == f"restore/2 is not at work: {job.detail}. Look at {OWNER}."
    assert page.work.step == "restore"


@pytest.mark.parametrize("state", ["running", "ready"])
def test_it_is_silent_after_minutes_only(state: str) -> None:
    for ms, level in ((SILENT_MS, Level.WORKING), (SILENT_MS + 1, Level.ATTENTION)):
        page = copied(ms, state=state).page()
        assert page.summary.health.level is level
        assert (shown(page).eta_seconds is None) == (level is Level.ATTENTION)


@pytest.mark.parametrize("state", ["holding", "paused", "job_not_ready"])
def test_a_gate_that_waits_is_not_silent(state: str) -> None:
    """It waits by design, and records no more readings if one could not be written."""
    world = copying("orders")
    gate = aged(result("lag_gate/2", state, progress("t", 4, 90), 4), FIVE_HOURS_MS, run=OWNER)
    page = with_result(world, gate).page()
    assert (shown(page, "lag_gate/2").state, page.summary.health.level) == (state, Level.WORKING)


def test_a_copy_that_is_paused_or_rests_or_waits_reports_on_and_is_not_silent() -> None:
    """Its readings are new, although nothing has been copied for hours."""
    still = copied(3_000)
    assert still.control.journal is not None
    pause = Pace(plan=still.control.journal.plan.fingerprint, paused=Instruction(by="ada", at_ms=0))
    rate = Rate(run=OWNER, attempt=1, at_ms=NOW_MS, disk=REST, is_paused=True)
    for changes in ({"pace": pause}, {"rates": {"restore/2": rate}}):
        world = replace(still, control=still.control.model_copy(update=changes))
        assert world.page().summary.health.level is Level.WORKING
    following = aged(result("catch_up", "ready", progress("t", 4, 0), 60), 3_000, run=OWNER)
    assert with_result(still, following).page().summary.health.level is Level.WORKING


def test_a_driver_that_still_waits_for_spark_is_not_silent() -> None:
    """It has taken one reading before, and a cluster may be busy."""
    for ms, level in ((FIRST_SILENT_MS, Level.WORKING), (FIRST_SILENT_MS + 1, Level.ATTENTION)):
        found = with_result(copying("orders"), once_reported(ms)).page()
        assert found.summary.health.level is level


def test_a_driver_that_dies_after_its_first_report_does_not_run_for_ever() -> None:
    found = with_result(copying("orders"), once_reported(FIVE_HOURS_MS)).page()
    detail = (
        "no report for 5 h, its first one said running: its driver has died, or waits for a busy cluster to begin"
    )
    assert (shown(found).state, shown(found).detail) == ("not_at_work", detail)
    assert found.summary.health.reason == f"restore/2 is not at work: {detail}. Look at {OWNER}."


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.WARMING])
def test_within_the_pause_and_behind_it_no_job_has_to_report(phase: Phase) -> None:
    """Within the pause jobs give only signs of life."""
    control = copied(FIVE_HOURS_MS).control
    assert control.journal is not None
    control = control.model_copy(update={"journal": control.journal.model_copy(update={"phase": phase})})
    assert with_silent_jobs(control, NOW_MS) == control


def test_what_another_run_has_left_has_no_time_left_and_needs_nobody() -> None:
    """No driver is expected of a run that is over; a bridge has a rule of its own."""
    page = copied(FIVE_HOURS_MS, run="expand_orders/first").page()
    assert (shown(page).eta_seconds, page.summary.health.level) == (None, Level.WORKING)
    world = copying("orders")
    bridge = aged(result("bridge", "ready", progress("t", 4, 90), 4), FIVE_HOURS_MS, run="bridge_orders/r")
    assert with_result(world, bridge).page().summary.health.level is Level.WORKING


def test_a_dead_job_tells_no_pace_any_more() -> None:
    control = copied(FIVE_HOURS_MS).control
    rate = Rate(run=OWNER, attempt=1, at_ms=NOW_MS - FIVE_HOURS_MS, disk=REST, is_paused=True)
    control = control.model_copy(update={"rates": {"restore/2": rate}})
    assert "at rest" in told_pace(control)
    assert told_pace(with_silent_jobs(control, NOW_MS)) == ""
    assert with_silent_jobs(ControlState(), NOW_MS) == ControlState()
