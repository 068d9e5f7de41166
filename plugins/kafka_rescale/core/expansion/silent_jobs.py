"""Jobs that report no more: their drivers have died, with their workers perhaps, and have left that they run."""

from __future__ import annotations

from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.expansion.bridge_progress import JOB as BRIDGE
from kafka_rescale.core.expansion.bridge_progress import NOT_AT_WORK
from kafka_rescale.core.expansion.switch_wait import span

SILENT_MS = 300_000
"""A driver reports every few seconds, also while its copy is paused, rests for a disk, or waits for the switch."""
FIRST_SILENT_MS = 1_800_000
"""A driver takes its first reading before Spark has begun, which may wait for a busy cluster."""
REPORTING = frozenset({"running", "ready"})
"""The states in which a driver reports. A gate that waits is in another one."""


def with_silent_jobs(control: ControlState, now_ms: int) -> ControlState:
    """Return the control state with the jobs that report no more as not at work.

    :param now_ms: wall clock, in ms since the epoch.
    """
    journal = control.journal
    if journal is None or journal.phase is not Phase.WARMING:
        # Within the pause, jobs give only signs of life. Behind it, only a bridge works, which has its own rule.
        return control
    results = {job: _told(result, now_ms) for job, result in control.results.items()}
    return control.model_copy(update={"results": results})


def told_silent(control: ControlState) -> list[str]:
    """Return a sentence for each job of the run in progress that is not at work, though it should be.

    :param control: the control state, ``with_silent_jobs``.
    """
    owner = control.journal.owner if control.journal is not None else ""
    return [f"{r.job} is not at work: {r.detail}. Look at {r.run}." for r in silent_of(control, owner)]


def silent_of(control: ControlState, run: str) -> list[JobResult]:
    """Return the jobs of a run that are not at work, though they should be.

    :param control: the control state, ``with_silent_jobs``.
    """
    results = control.results.values()
    return [r for r in results if r.run == run and r.state == NOT_AT_WORK and r.job != BRIDGE]


def _told(result: JobResult, now_ms: int) -> JobResult:
    samples = result.lags.samples
    if result.job == BRIDGE or result.state not in REPORTING or not samples:
        return result
    is_first, silent_ms = len(samples) == 1, now_ms - samples[-1].at_ms
    if silent_ms <= (FIRST_SILENT_MS if is_first else SILENT_MS):
        return result
    said = f"first one said {result.state}: its driver has died, or waits for a busy cluster to begin"
    detail = f"no report for {span(silent_ms)}, its {said if is_first else f'last one said {result.state}'}"
    return result.model_copy(update={"state": NOT_AT_WORK, "detail": detail})
