"""What the control topic keeps of an attempt that ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_rescale.core.control.history import JobSpan, PastExpansion, Proven, surplus
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Switch
from kafka_rescale.core.verify.promotable import proven_until
from kafka_rescale.core.verify.proof import Proof, is_of
from kafka_rescale.core.verify.report import is_about

KEPT_JOBS = ("restore", "warm_up", "prewarm", "rehearse", "move", "catch_up", "prove", "bridge")
"""The jobs whose results are kept, in the order of a run."""


def kept_of(state: ControlState, outcome: Phase, now_ms: int) -> Mapping[str, PastExpansion | None]:
    """Return the record of the attempt that ends now. If there are too many records, delete the oldest as well.

    The transaction that ends the attempt writes the record. So it is written once, whichever process is killed.
    """
    assert state.journal is not None
    past = past_of(state, state.journal, outcome, now_ms)
    deleted = {f"{Concern.HISTORY}/{key}": None for key in surplus(state.history, past)}
    return {**deleted, f"{Concern.HISTORY}/{past.key}": past}


def past_of(state: ControlState, journal: Journal, outcome: Phase, now_ms: int) -> PastExpansion:
    """Return what is kept of an attempt."""
    plan = journal.plan
    return PastExpansion(
        plan=plan.fingerprint,
        attempt=journal.attempt,
        outcome=outcome,
        blue=plan.blue,
        green=plan.green,
        in_place=plan.is_in_place,
        before=plan.partitions_before,
        after=plan.partitions,
        # The journal has the run that has begun the attempt; another run may have rolled it back.
        run=state.lease.owner if state.lease is not None else journal.owner,
        triggered_by=journal.triggered_by,
        approved_by=Switch.of(journal, state.switch).by,
        begun_ms=journal.begun_ms,
        ended_ms=now_ms,
        reason=journal.rollback_reason,
        stopped_by=journal.stopped_by,
        jobs=tuple(_spans(state.results.values())),
        timings=dict(journal.timings),
        prewarmed=dict(journal.prewarmed),
        proven=_proven(state, journal),
        predicted=journal.predicted,
    )


def _spans(results: Iterable[JobResult]) -> Iterable[JobSpan]:
    kept = [r for r in results if r.job.partition("/")[0] in KEPT_JOBS]
    for each in sorted(kept, key=_place):
        done = each.worked
        yield JobSpan(job=each.job, state=each.state, seconds=done.seconds, records=done.records, bytes=done.bytes)


def _place(result: JobResult) -> tuple[int, str]:
    return KEPT_JOBS.index(result.job.partition("/")[0]), result.job


def _proven(state: ControlState, journal: Journal) -> Proven:
    reported = is_about(state.report, journal)
    verified = bool(state.report.get("passed")) if reported else None
    accepted = len(state.acceptances.of(journal.plan.fingerprint))
    if not is_of(state.proof, journal):
        return Proven(verified=verified, accepted=accepted)
    proof = Proof.model_validate(state.proof)
    if proof.attempt != journal.attempt:
        return Proven(verified=verified, accepted=accepted)
    rolling = proven_until(state, journal)
    until = rolling.fences.as_of_ms if rolling else proof.fences.as_of_ms
    return Proven(passed=proof.passed, until_ms=until, entries=proof.entries, verified=verified, accepted=accepted)
