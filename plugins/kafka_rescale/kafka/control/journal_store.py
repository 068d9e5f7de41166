"""The journal in the control topic: it begins once per plan and advances step by step."""

from __future__ import annotations

from kafka_rescale.core.application.pacing import FREE_DISK_PERCENT, Pacing
from kafka_rescale.core.control.bridge import ReplacedBridges
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.pace import Pace
from kafka_rescale.core.control.records import Change
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Switch
from kafka_rescale.core.errors import Fenced, Refused, UnsafeState
from kafka_rescale.core.expansion.run import RUN
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.prediction import Prediction
from kafka_rescale.core.plan.producers import after_rollback
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.lease import require_owner


def begin(
    control: ControlTopic,
    plan: Plan,
    owner: str,
    now_ms: int,
    *,
    triggered_by: str = "",
    predicted: Prediction | None = None,
    pacing: Pacing | None = None,
    free_disk_percent: int | None = FREE_DISK_PERCENT,
) -> Journal:
    """Begin an expansion, or go on with the expansion in progress.

    A plan that was rolled back begins anew as the next attempt. If an attempt goes on, its switch is waited for
    anew: that it was let through in an earlier run counts no more. Results of jobs of another plan or attempt are
    deleted, so that they can't be taken for results of this one; the history keeps what they had done.

    :param owner: the run that begins. If there is a lease, this run must hold it.
    :param triggered_by: the person who has triggered this run. If an attempt goes on, its journal keeps the person
        who has triggered its first run.
    :param predicted: what was predicted for the expansion.
    :param pacing: the pacing of the application file. A limit that a person has set for this plan counts instead.
    :param free_disk_percent: that of the application file; None if the copy does not rest for the disks.
    :raises Refused: an expansion by another plan is in progress, or a generation was promoted since this plan was
        made.
    :raises Fenced: another run holds the lease.
    """

    def change(state: ControlState) -> Change:
        if state.lease is not None:
            require_owner(state, control.application, owner)
        fresh = Journal(
            plan=plan,
            owner=owner,
            changed_at_ms=now_ms,
            begun_ms=now_ms,
            triggered_by=triggered_by,
            predicted=predicted,
        )
        journal = _begun(state.journal, fresh)
        if journal.phase is Phase.WARMING:
            _assert_next(state.generations, plan)
        other_plan = state.journal is None or state.journal.plan.fingerprint != plan.fingerprint
        kept = {**_kept_bridges(state), **_kept_copies(state)} if other_plan else {}
        pace = Pace.of(plan.fingerprint, state.pace).declared(pacing, free_disk_percent)
        is_written = state.pace is not None or pace != Pace(plan=plan.fingerprint)
        paced: Change = {Concern.PACE: pace} if is_written else {}
        return {Concern.JOURNAL: journal, **kept, **paced, **_switch(state), **_stale(state, journal)}

    return _journal(control.update(change), control.application)


def advance(
    control: ControlTopic, phase: Phase, now_ms: int, *, holder: str | None = None, **changes: object
) -> Journal:
    """Write that the expansion has reached a phase; the same phase again is allowed.

    :param holder: the owner that does this; if given, it must hold the lease.
    :param changes: other fields of the journal to set.
    :raises UnsafeState: there is no expansion, or the phase can't follow the present one.
    :raises Fenced: another run holds the lease.
    """

    def change(state: ControlState) -> Change:
        if holder is not None:
            require_owner(state, control.application, holder)
        journal = _journal(state, control.application).advanced(phase, now_ms=now_ms, **changes)
        return {Concern.JOURNAL: journal}

    return _journal(control.update(change), control.application)


def assert_current(connection: KafkaConnection, plan: Plan, attempt: int) -> None:
    """Make sure that an attempt may empty its copies: it is still the attempt at work, and not done.

    :param attempt: number of the attempt in the journal when the job began.
    :raises Fenced: another attempt or expansion has begun, or the copies are whole, and green may run on them.
    """
    journal = ControlTopic(connection, plan.application).read().journal
    if journal is None:
        return
    ours = journal.attempt == attempt and journal.plan.fingerprint == plan.fingerprint
    if not ours or journal.phase is Phase.CAUGHT_UP or journal.is_promoted:
        raise Fenced(
            f"copies of {plan.green}",
            found=f"attempt {journal.attempt} of the expansion to {journal.plan.partitions} partitions, "
            f"phase {journal.phase}",
            expected=f"attempt {attempt} of this expansion, before its copies are whole",
            remedy="Nothing to do here: nothing was emptied, and what is in the journal goes on.",
        )


def _begun(known: Journal | None, fresh: Journal) -> Journal:
    """Return the journal to be written.

    :param fresh: the journal of a first attempt.
    """
    if known is None:
        return fresh
    plan = fresh.plan
    if known.phase is Phase.ROLLED_BACK:
        # The number of the attempt goes on even for another plan, because its generation may have the same topics.
        # Offsets that an earlier attempt captured are dropped. A rollback does not undo local state on disk.
        was_warm = known.was_warm if known.was_warm == plan.green else ""
        fencing = after_rollback(plan, known.plan)
        return fresh.model_copy(update={"plan": fencing, "attempt": known.attempt + 1, "was_warm": was_warm})
    if known.plan.fingerprint == plan.fingerprint:
        return known.model_copy(update={"owner": fresh.owner})
    if known.phase is Phase.COMPLETE:
        return fresh
    raise Refused(
        f"expansion of {plan.application}",
        found=f"another expansion in progress, to {known.plan.partitions} partitions (phase {known.phase})",
        expected="the same plan, or no expansion in progress",
        remedy=known.way_on,
    )


def _switch(state: ControlState) -> Change:
    """Return the record of the switch if the attempt goes on. Another attempt has another record."""
    journal, switch = state.journal, state.switch
    if journal is None or journal.phase is not Phase.WARMING or switch is None:
        return {}
    return {Concern.SWITCH: Switch.of(journal, switch).of_next_run()}


def _stale(state: ControlState, begun: Journal) -> Change:
    """Return the deletion of the results and rates that are of an earlier plan or attempt.

    No job goes on from such a result: positions are in the copy group, and what a proof has compared is a record
    of its own. The bridge and the watch have runs of their own, so a rollback does not end what they say.

    :param begun: the journal to be written.
    """
    known = state.journal
    other_plan = known is None or known.plan.fingerprint != begun.plan.fingerprint
    if not other_plan and known is not None and known.attempt == begun.attempt:
        return {}
    tasks = {step.task for step in RUN}
    of = ((Concern.RESULT, state.results), (Concern.RATE, state.rates))
    jobs = ((concern, job) for concern, records in of for job in records)
    return {f"{c}/{job}": None for c, job in jobs if other_plan or job.partition("/")[0] in tasks}


def _kept_bridges(state: ControlState) -> Change:
    """Return the record that keeps the bridges of the expansion whose journal is about to be replaced."""
    journal = state.journal
    if journal is None or journal.phase is not Phase.COMPLETE:
        return {}
    kept = ReplacedBridges.of(journal, state.bridge)
    return {Concern.REPLACED: kept} if kept is not None or state.replaced is not None else {}


def _kept_copies(state: ControlState) -> Change:
    """Return the record that keeps how far the expansion has copied whose journal is about to be replaced."""
    journal, known = state.journal, state.generations
    if journal is None or journal.phase is not Phase.COMPLETE or known is None or state.copied == known.copied:
        return {}
    return {Concern.GENERATIONS: known.model_copy(update={"copied": state.copied})}


def _assert_next(known: Generations | None, plan: Plan) -> None:
    """Refuse to build a generation that runs by now: its topics would be emptied for copies of the old generation.

    Preflight planned from the generation that ran then. The task that begins may have been queued since, or
    cleared days later.
    """
    if known is not None and plan.generation <= known.generation:
        raise Refused(
            f"expansion of {plan.application}",
            found=f"a plan for generation {plan.generation} that was made while {plan.blue} ran, while "
            f"{known.running} is generation {known.generation} by now",
            expected="a plan for the generation after the running one",
            remedy="Nothing has been touched. Trigger the expansion again: its preflight plans anew.",
        )


def _journal(state: ControlState, application: str) -> Journal:
    if state.journal is None:
        raise UnsafeState(
            f"expansion of {application}",
            found="no journal",
            expected="an expansion that has begun",
            remedy="Begin with preflight and plan.",
        )
    return state.journal
