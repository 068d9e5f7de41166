"""Back to blue as it was. This is possible until the promotion, because blue has not been changed by then."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.autoscaling.messages import asks_again
from kafka_rescale.core.control.journal import BLUE_STOPPED, Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.records import Change
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Order, Switch
from kafka_rescale.core.errors import ClusterOutage, Fenced, RescaleError
from kafka_rescale.core.expansion.late_words import begun_since
from kafka_rescale.core.expansion.lost_records import lost_perhaps, lost_records
from kafka_rescale.core.page.health import failed_jobs
from kafka_rescale.core.plan.instances import blue
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms, wait_until
from kafka_rescale.kafka.control import lease
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.lifecycle.factory import stop_in_time
from kafka_rescale.lifecycle.instance import Instance
from kafka_rescale.operations.cutover.held import send_away
from kafka_rescale.operations.cutover.persistence import insist, start, state_of_pause
from kafka_rescale.operations.expansion import producers
from kafka_rescale.operations.expansion.rescale import LEASE_MS, Rescale
from kafka_rescale.operations.expansion.warm_up_gate import close_gate
from kafka_rescale.operations.modes.choice import mode_of

log = logging.getLogger(__name__)

START_SECONDS = 60.0
STOP_SECONDS = 60.0
"""How long a person is waited for who stops blue before it is started again: it may be down meanwhile."""


@dataclass(frozen=True)
class RollBack:
    """The result of a rollback.

    :param is_done: whether the attempt is rolled back, by this call or earlier by a task of the same run.
    :param told: a sentence that says what was done, or why nothing was done.
    :param was_done_before: whether another process had already rolled the attempt back, or has done so meanwhile.
    """

    is_done: bool
    told: str
    was_done_before: bool = False

    def __str__(self) -> str:
        return self.told


def roll_back(
    application: Application,
    connection: KafkaConnection,
    *,
    owner: str,
    reason: str,
    take_over: bool = False,
    stopped_by: str = "",
    airflow: str = "",
    attempt: Journal | None = None,
    asked_ms: int | None = None,
) -> RollBack:
    """Start blue again if it was stopped, and close the attempt.

    Copies stay where they are: a new run continues with them. While the brokers don't answer, this tries again and
    again; only the end of the process stops it.

    The cutover, the task ``roll_back`` and a person may roll back one attempt at the same time. Once one of them
    has stopped blue completely, none stops it again.

    :param owner: the run that holds the lease; without the lease nothing is changed.
    :param reason: why. The journal gets it, with the failures of jobs, unless the journal already has a reason.
    :param take_over: whether to take the lease from its present holder because a person has decided so.
    :param stopped_by: the person who has decided so, or the approval that was not given; empty if a run failed by
        itself. Autoscaling then asks before it tries again.
    :param airflow: the Airflow that the owner is a run of; empty if that is not known.
    :param attempt: the attempt to roll back, as the last journal of it that is known; if another one has begun
        since, nothing is changed. None for the present attempt.
    :param asked_ms: when a person has asked for it, in ms since the epoch; if the attempt has begun since, nothing
        is changed. None for now.
    :raises Fenced: another run has gone on, and needs blue stopped.
    :raises UnsafeState: the control topic has lost the records of the attempt; the error says who is down.
    """
    rescale = Rescale.open(application, connection, owner, airflow)
    known: list[Journal] = []

    def told(what: str) -> Callable[[], str]:
        return lambda: state_of_pause(rescale.application.application_id, known[-1] if known else None, what)

    # No process starts blue without an answer, not even the process that has stopped it. Its own promotion may
    # have been committed although the answer got lost. Cut off from the brokers, it also can't know whether
    # another try of its task, or a person's run that has taken the lease, has promoted green meanwhile: then both
    # generations would process the same input. Without brokers blue could not process any record anyway.
    claim = _Claim(application.application_id, owner, airflow, attempt, take_over=take_over, asked_ms=asked_ms)
    journal = insist(
        lambda: _mark(rescale.control, claim, reason, stopped_by),
        told("an answer of the control topic; then what was stopped is started again"),
    )
    if isinstance(journal, RollBack):
        return journal
    known.append(journal)
    rescale, claim = replace(rescale, attempt=journal), replace(claim, attempt=journal)
    log.warning("rolling back %s: %s", journal.plan.green, journal.rollback_reason)
    _resume(rescale, journal, told)
    # Another process may have ended this rollback while this one was slow. Then the rest is done as well.
    # From here on blue is as it was.
    known.append(journal.model_copy(update={"stop_asked": False}))
    rescale, claim = replace(rescale, attempt=known[-1]), replace(claim, attempt=known[-1])
    present = insist(lambda: _attempt(rescale.control.read(), claim), told("the control topic to be read"))
    if isinstance(present, RollBack):
        return present
    insist(lambda: close_gate(rescale, journal), told("the instances behind the warm-up gate to be stopped"))
    insist(lambda: send_away(rescale, journal), told("the processes held at the door to be stopped"))
    undo = mode_of(journal.plan).roll_back
    insist(lambda: undo(rescale, journal), told("the topics' compaction to be released"))
    insist(lambda: rescale.end(Phase.ROLLED_BACK), told("the rollback to be recorded"))
    if take_over:
        # A run that rolls itself back may go on in its next try. A run that a person has ended may not.
        insist(lambda: lease.release(rescale.control, owner), told("the lease to be given back"))
    warning = asks_again(application) if journal.stopped_by else ""
    # Airflow does not take a question back whose run was rolled back by another one.
    may_ask = take_over and not journal.pause_started_ms
    question = f"If approve_cutover of {journal.owner} still asks, reject it" if may_ask else ""
    return RollBack(True, ". ".join(filter(None, [f"rolled back; {_of_blue(journal)}", question, warning])))


def _resume(rescale: Rescale, journal: Journal, told: Callable[[str], Callable[[], str]]) -> None:
    """Let blue's producers go on, and start blue if it was stopped.

    :raises Fenced: another run has gone on meanwhile. It may hold the producers by now.
    """
    started = told(f"{journal.plan.blue} to be started again")
    if journal.pause_started_ms and _is_over(_not_overtaken(rescale, blue(journal.plan), started), journal):
        return
    unanswered = False
    try:
        # Release them at once: their sources may not be able to wait, and blue reads their records once it is up.
        if journal.pause_started_ms:
            producers.release(rescale)
    except ClusterOutage as outage:
        log.error("producers can't be released yet: %s", outage)
        unanswered = True
    finally:
        if journal.stop_asked:
            _restart_blue(rescale, journal, started)
    if unanswered:
        insist(lambda: producers.release(rescale), told("the producers to be released"))


@dataclass(frozen=True)
class _Claim:
    """Who rolls back, and what; the other parameters are those of ``roll_back``.

    :param application: base name of the application.
    """

    application: str
    owner: str
    airflow: str
    attempt: Journal | None
    take_over: bool
    asked_ms: int | None = None


def _mark(control: ControlTopic, claim: _Claim, reason: str, stopped_by: str) -> Journal | RollBack:
    """Mark the attempt as being rolled back by this owner, or return why it isn't."""

    def mark(state: ControlState) -> Change:
        present = _attempt(state, claim)
        if isinstance(present, RollBack):
            return {}
        taken = lease.granted(
            state.lease, claim.owner, present.plan.partitions, now_ms() + LEASE_MS, claim.airflow
        )
        # If several tasks roll back one attempt, the first knows the reason; the others only find that it failed.
        why = present.rollback_reason or "; ".join([reason, *failed_jobs(state)])
        who = present.stopped_by or stopped_by or _cancelled_by(state, present)
        marked = present.advanced(Phase.ROLLING_BACK, now_ms=now_ms(), rollback_reason=why, stopped_by=who)
        return {Concern.LEASE: taken, Concern.JOURNAL: marked}

    # Read first: if there is nothing to do, no other process is fenced.
    found = _attempt(control.read(), claim)
    if isinstance(found, RollBack):
        return found
    claim = replace(claim, attempt=found)
    # Green may have been promoted by now. Then the lease has to stay where it is, because only its holder would
    # start green. So one compare-and-set changes both the lease and the phase. It comes before blue is started: a
    # cutover that wakes up late must find that it has lost. The returned journal has what that cutover had done.
    return _attempt(lease.update_despite_races(control, mark), claim)


def _cancelled_by(state: ControlState, journal: Journal) -> str:
    switch = Switch.of(journal, state.switch)
    return f"{switch.by}, who has cancelled the switch" if switch.order is Order.CANCEL else ""


def _attempt(state: ControlState, claim: _Claim) -> Journal | RollBack:
    """Return the attempt to roll back, or why there is nothing to roll back.

    :raises UnsafeState: the control topic has lost its records.
    """
    journal = state.journal
    if journal is None and claim.attempt is not None:
        raise lost_records(claim.attempt)
    if journal is not None and claim.attempt is not None and not journal.is_same_attempt(claim.attempt):
        return _replaced(state, claim, claim.attempt, journal)
    if journal is None or state.lease is None or not journal.in_progress:
        return _nothing_to_do(state, claim)
    if journal.is_promoted:
        return RollBack(False, mode_of(journal.plan).only_forward(journal.plan))
    if not (claim.take_over or state.lease.is_of(claim.owner, claim.airflow)):
        return RollBack(False, f"not rolled back: {state.lease.owner} holds the lease")
    if late := begun_since(journal, claim.asked_ms):
        return RollBack(False, f"{late}; trigger it again to roll this attempt back")
    return journal


def _replaced(state: ControlState, claim: _Claim, attempt: Journal, present: Journal) -> RollBack:
    """Say that another attempt has begun: it could only begin because this one had ended."""
    ended = f"attempt {attempt.attempt} has ended before, and attempt {present.attempt} has begun"
    return RollBack(_is_of(state, claim), f"nothing to roll back: {ended}", was_done_before=True)


def _is_of(state: ControlState, claim: _Claim) -> bool:
    return state.lease is not None and state.lease.is_of(claim.owner, claim.airflow)


def _nothing_to_do(state: ControlState, claim: _Claim) -> RollBack:
    journal = state.journal
    if journal is not None and journal.phase is Phase.ROLLED_BACK:
        is_mine = _is_of(state, claim)
        done = f"rolled back before, by the task that failed; {_of_blue(journal)}"
        told = f"{done if is_mine else 'nothing to roll back: it was done before'}; {journal.told}"
        return RollBack(is_mine, told, was_done_before=True)
    is_complete = journal is not None and journal.phase is Phase.COMPLETE
    way_back = mode_of(journal.plan).way_back(journal.plan) if journal is not None and is_complete else ""
    told = f"the expansion is complete. {way_back}" if way_back else "no expansion is in progress"
    if journal is None:
        told = f"{told}; {lost_perhaps(claim.application)}"
    return RollBack(False, f"nothing to roll back: {told}")


def _of_blue(journal: Journal) -> str:
    return f"{journal.plan.blue} {'was started again' if journal.stop_asked else 'was never touched'}"


def _restart_blue(rescale: Rescale, journal: Journal, told: Callable[[], str]) -> None:
    """Start blue, whether it runs, is stopped, or is being stopped.

    A ``stop`` command outlives a killed task: blue may look alive and go down a moment later. So this first stops
    blue completely, which makes the outcome certain. If that fails, blue is started all the same, as it owns the
    inputs. Stopping once is enough: if a later try finds blue running, an earlier try or a person has started it
    since. So the journal is read again right before the stop: another process that rolls back may have come first.
    """
    instance = blue(journal.plan)
    present = _not_overtaken(rescale, instance, told)
    if _is_over(present, journal):
        return
    if not present.stopped_again:
        _stop_for_good(rescale, instance)
        # What was stopped here is started here, also if another process has ended the rollback meanwhile.
        _not_overtaken(rescale, instance, told)
    insist(lambda: start(rescale.lifecycle, instance, told), told)
    if not journal.blue_ran:
        log.warning(
            "%s did not run before this cutover either; the rollback does not wait for it", journal.plan.blue
        )
        return
    insist(
        lambda: wait_until(
            lambda: rescale.lifecycle.is_running(instance),
            seconds=START_SECONDS,
            what=f"{instance.application_id} to run again",
            remedy="START IT BY HAND NOW: it is down. Then retry the rollback.",
        ),
        told,
    )


def _is_over(present: Journal, attempt: Journal) -> bool:
    """Whether another process has ended this rollback: then blue runs, and nothing is to be done about it."""
    return present.phase is Phase.ROLLED_BACK or not present.is_same_attempt(attempt)


def _not_overtaken(rescale: Rescale, instance: Instance, told: Callable[[], str]) -> Journal:
    """Return the present journal, unless another run has gone on, while this process hung or was frozen.

    :raises Fenced: green is promoted by now, the other run has stopped blue, or blue is no longer the application.
    :raises UnsafeState: the control topic has lost the records of the attempt.
    """
    journal = insist(rescale.control.read, told).journal
    if journal is None:
        assert rescale.attempt is not None
        raise lost_records(rescale.attempt)
    if journal.is_promoted or journal.phase in BLUE_STOPPED or journal.plan.blue != instance.application_id:
        raise Fenced(
            f"rollback of {rescale.application.application_id}",
            found=f"phase {journal.told}",
            expected=f"phase {Phase.ROLLING_BACK}, before {instance.application_id} is started",
            remedy="Another run has gone on with the expansion: look whether its application runs.",
        )
    return journal


def _stop_for_good(rescale: Rescale, instance: Instance) -> None:
    def stop() -> None:
        stop_in_time(rescale.lifecycle, instance, STOP_SECONDS)
        rescale.advance(Phase.ROLLING_BACK, stopped_again=True)

    def clear() -> None:
        # A classic group keeps a member after a clean close, and a new start would wait for its session timeout.
        if not rescale.lifecycle.is_running(instance):
            rescale.admin.remove_members(instance.application_id)

    for step in (stop, clear):
        try:
            step()
        except RescaleError as error:
            log.error(
                "starting %s, although the complete stop before that has failed: %s",
                instance.application_id,
                error,
            )
