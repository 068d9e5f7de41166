"""The end of a verified expansion: undo protections, call the callback, give the lease back."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.expansion.callback import ExpansionCallback
from kafka_rescale.core.expansion.prewarming import remark_on
from kafka_rescale.core.page.history import HEADER, history_rows
from kafka_rescale.core.plan.instances import blue, green
from kafka_rescale.core.verify.misrouted import refuse_misrouted
from kafka_rescale.core.verify.report import Report, is_about
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms, within
from kafka_rescale.kafka.control import lease
from kafka_rescale.kafka.reading.misrouted import look_for_misrouted
from kafka_rescale.operations.cutover.persistence import OUTAGE_SECONDS, insist
from kafka_rescale.operations.expansion.compaction import release_compaction
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.modes.choice import mode_of

T = TypeVar("T")
log = logging.getLogger(__name__)


def finish(
    application: Application, connection: KafkaConnection, *, owner: str, airflow: str = ""
) -> dict[str, object]:
    """Close a verified expansion. If this is called again after the end, it returns the same.

    :param owner: the run that holds the lease.
    :param airflow: the Airflow that the owner is a run of; empty if that is not known.
    :returns: the report, the parts of the downtime, and the effect of pre-warming. Also the stores without a
        changelog, how many findings a person has accepted, what each copy that began with a snapshot has read, and
        the row of this expansion in the history, which has what was predicted.
    :raises Outage: green doesn't run.
    :raises UnsafeState: the cutover has not started green, verify has not passed, blue runs or has written after
        it was proven gone, records of a grown input lie in partitions of its old count, or
        ``on_partition_expansion`` may have been called already.
    """
    rescale = Rescale.open(application, connection, owner, airflow)
    state = _patiently(rescale, "the control topic to be read", rescale.control.read)
    journal = _ended(state, owner) or _close(rescale, state)
    end = _patiently(rescale, "the report", rescale.control.read)
    return {
        "green": journal.plan.green,
        "timings": dict(journal.timings),
        "not_copied": list(journal.plan.not_copied),
        "accepted": len(end.acceptances.of(journal.plan.fingerprint)),
        "prewarming": remark_on(journal),
        "copies": {job: r.detail for job, r in state.results.items() if r.run == owner and r.seeded},
        "history": _row(journal, end),
        "report": end.report,
    }


def _row(journal: Journal, state: ControlState) -> dict[str, str | int | None]:
    of_this = [
        p for p in state.history.values() if (p.plan, p.attempt) == (journal.plan.fingerprint, journal.attempt)
    ]
    return dict(zip(HEADER, history_rows(of_this)[0], strict=True)) if of_this else {}


def _ended(state: ControlState, owner: str) -> Journal | None:
    """Return the journal if this run has already done everything and given its lease back: its answer got lost."""
    journal, held = state.journal, state.lease
    if journal is None or held is None or journal.phase is not Phase.COMPLETE:
        return None
    return journal if held.released and held.owner == owner else None


def _close(rescale: Rescale, state: ControlState) -> Journal:
    """Do the remaining steps, and give the lease back."""
    journal = _patiently(rescale, "the control topic to be read", rescale.journal)
    _assert_started(journal)
    if journal.phase is Phase.STARTED:
        journal = _patiently(
            rescale, "the new generation to be found in order", lambda: _record_verified(rescale, state)
        )
    if journal.phase is Phase.VERIFIED:
        held = journal
        _patiently(rescale, "the topics' compaction to be released", lambda: release_compaction(rescale, held))
        _on_partition_expansion(rescale, journal)
        # A step of its own: if recording the end fails, the callback must not be called again.
        journal = _patiently(rescale, "the end to be recorded", lambda: rescale.end(Phase.COMPLETE))
    _patiently(rescale, "the lease to be given back", lambda: lease.release(rescale.control, rescale.owner))
    return journal


def _assert_started(journal: Journal) -> None:
    """Refuse to end an expansion that is not so far: a person has marked a task that had failed as success."""
    if journal.phase not in {Phase.STARTED, Phase.VERIFIED, Phase.COMPLETE}:
        raise UnsafeState(
            f"end of the expansion of {journal.plan.application}",
            found=f"phase {journal.told}",
            expected=f"phase {Phase.STARTED}, which the cutover writes when {journal.plan.green} runs",
            remedy="Nothing was changed, and the lease is kept. If the attempt was rolled back, trigger the "
            "expansion again. Otherwise look at once which generation runs. Then clear `cutover` with its "
            "downstream tasks (in place, `move` too): they go on from this phase. Don't mark them as success.",
        )


def _patiently(rescale: Rescale, what: str, step: Callable[[], T]) -> T:
    """Call a step, and wait some minutes for the cluster if need be: green works meanwhile."""
    told = f"{rescale.application.application_id}: waiting for {what}"
    return insist(step, lambda: told, seconds_left=within(OUTAGE_SECONDS))


def _record_verified(rescale: Rescale, state: ControlState) -> Journal:
    journal = rescale.journal()
    if journal.phase is Phase.VERIFIED:  # its answer was lost
        return journal
    _assert_passed(state, journal)
    mode_of(journal.plan).assert_finishable(rescale, journal, state.acceptances)
    rescale.assert_up(green(journal.plan))
    # Check again: verify has ended, and producers' metadata may be older than that.
    inputs = look_for_misrouted(rescale.connection, journal, state.acceptances)
    refuse_misrouted(inputs)
    # Findings that were accepted since verify ended are reported as well.
    report = Report.model_validate(state.report).model_copy(update={"inputs": inputs})
    report = report.concluded(state.acceptances)
    return rescale.advance(Phase.VERIFIED, records=lambda _: {Concern.REPORT: report})


def _on_partition_expansion(rescale: Rescale, journal: Journal) -> None:
    callback = ExpansionCallback.of(rescale.application)
    if callback is None:
        return
    begun: list[int] = []

    def begin(present: Journal) -> Journal:
        if begun == [present.callback_begun_ms]:
            return present  # the try before has recorded it, and its answer was lost
        following = callback.begun(present, now_ms=now_ms())
        begun[:] = [following.callback_begun_ms]
        return following

    # Decide inside the compare-and-set: if one run has two attempts, only one of them may call the callback.
    _patiently(
        rescale,
        f"the beginning of {callback.name} to be recorded",
        lambda: rescale.change(begin),
    )
    old, new = blue(journal.plan).partitions, journal.plan.partitions
    log.info("calling %s(%d, %d)", callback.name, old, new)
    callback(old, new, journal.plan)


def _assert_passed(state: ControlState, journal: Journal) -> None:
    report = state.report
    # A report of an earlier expansion, or of another promotion, proves nothing.
    if not (is_about(report, journal) and report.get("passed")):
        raise UnsafeState(
            f"expansion of {journal.plan.application}",
            found="no passed verification report",
            expected="verify to have passed",
            remedy="Look at the report: `python -m kafka_rescale status FILE`; then clear the verify task.",
        )
