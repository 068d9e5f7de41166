"""Wait for the moment when the switch may begin. Meanwhile, hear what people order about it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.autoscaling.messages import asks_again
from kafka_rescale.core.control.journal import AFTER_PROMOTION, BLUE_STOPPED, Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.records import Change
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Order, Switch
from kafka_rescale.core.errors import InvalidInput, Refused, UnsafeState
from kafka_rescale.core.expansion.late_words import assert_about, assert_last
from kafka_rescale.core.expansion.pacing_words import resumed_ms, told_pause_of, told_stop
from kafka_rescale.core.expansion.switch_wait import Standing, Wait, copied_topics, told, utc, wait_of
from kafka_rescale.core.expansion.switch_words import CANCEL, CUT_OVER_NOW, POSTPONE, moment_ms
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.verify.promotable import proven_until
from kafka_rescale.core.verify.proof import Proof, is_of
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.lease import renewed, require_owner, update_despite_races
from kafka_rescale.kafka.reading.source_rules import SourceRules
from kafka_rescale.operations.expansion.rescale import LEASE_MS

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """Whether a run may begin its switch.

    :param passes: whether the run may begin its switch.
    :param told: why, or what the run waits for.
    :param proven_ms: the time up to which the copies are proven; 0 if there is no proof.
    """

    passes: bool
    told: str
    proven_ms: int = 0


def begin_wait(application: Application, connection: KafkaConnection, *, owner: str, asks: bool) -> Switch:
    """Note that the copies are ready, and that the wait for the switch has begun; the limit counts from here.

    :param owner: the run that holds the lease.
    :param asks: whether a person is asked for the approval.
    :raises UnsafeState: a person has cancelled the switch, or the wait for it has lasted too long.
    """
    control = ControlTopic(connection, application.application_id)
    begun = _beginning(application, connection, control, asks=asks)
    switch = _write(control, owner, lambda state, journal: begun(Switch.of(journal, state.switch)))
    _assert_goes_on(application, wait_of(switch, now_ms()))
    return switch


def approve(
    application: Application,
    connection: KafkaConnection,
    *,
    owner: str,
    by: str,
    order: Order,
    not_before_ms: int,
    answered_ms: int | None = None,
) -> Switch:
    """Record what the person who has approved the cutover said about its time.

    A time that was past when the person answered, or is behind the limit of the wait, does not end the run: the
    switch waits for another order.

    :param by: the person.
    :param order: ``window`` without a time if the person has named neither a time nor "now".
    :param answered_ms: when the person has answered, in ms since the epoch; None for now.
    :raises Refused: another person has cancelled the switch meanwhile.
    """
    control = ControlTopic(connection, application.application_id)

    def change(state: ControlState, journal: Journal) -> Switch:
        known = Switch.of(journal, state.switch).answered()
        if order is Order.WINDOW and not not_before_ms:
            return known.approved(by, now_ms(), answered_ms)
        try:
            from_ms = now_ms() if answered_ms is None else answered_ms
            _assert_within(not_before_ms, from_ms, _until_ms(application, known))
        except Refused as error:
            log.error("%s The switch waits for another order.", error)
            unfit = f"the approval says {utc(not_before_ms)}, which is past or behind the limit"
            return known.said(Order.HOLD, by, now_ms(), reason=unfit, asked_for_ms=answered_ms)
        return known.said(order, by, now_ms(), not_before_ms=not_before_ms, asked_for_ms=answered_ms)

    return _write(control, owner, change)


def let_through(application: Application, connection: KafkaConnection, *, owner: str) -> Answer:
    """Let the switch through if its moment has come. One compare-and-set decides between this and what people say.

    If the cutover has already begun, this does not wait: perhaps no generation runs. Until then, each call decides
    anew, because an earlier answer may be from a window that is over.

    :param owner: the run that holds the lease.
    :raises UnsafeState: a person has cancelled the switch, the wait has lasted too long, or the attempt was rolled
        back.
    :raises Fenced: another run holds the lease.
    """
    control = ControlTopic(connection, application.application_id)
    state = control.read()
    require_owner(state, application.application_id, owner)
    if (phase := state.journal.phase if state.journal else None) in {*BLUE_STOPPED, *AFTER_PROMOTION}:
        return Answer(True, f"the cutover has begun before, phase {phase}")
    begun = _beginning(application, connection, control, asks=False)
    stop = remedy = ""
    went_on_ms = 0

    def change(present: ControlState, journal: Journal) -> Switch:
        nonlocal stop, remedy, went_on_ms
        # After a stop, the delta to copy has no bound.
        stop = told_stop(present, now_ms())
        remedy = " `resume` lets both go on." if told_pause_of(present) else ""
        went_on_ms = resumed_ms(present)
        switch = begun(Switch.of(journal, present.switch))
        is_open = wait_of(switch, now_ms(), stop, went_on_ms).standing is Standing.OPEN
        return switch.released(now_ms()) if is_open else switch

    switch = _write(control, owner, change)
    wait = wait_of(switch, now_ms(), stop, went_on_ms)
    if not switch.released_ms:
        _assert_goes_on(application, wait)
        if stop:
            return Answer(False, f"The switch waits: the copy is {stop}.{remedy}")
    text = f"The switch begins: {wait.why}." if wait.standing is Standing.OPEN else told(switch, now_ms())
    return Answer(switch.released_ms > 0, text, _proven_ms(state))


def say(
    application: Application,
    connection: KafkaConnection,
    order: Order,
    *,
    by: str,
    not_before_ms: int = 0,
    reason: str = "",
    asked_ms: int | None = None,
) -> Switch:
    """Record what a person orders about the switch of the expansion in progress: postpone, begin now, or cancel.

    The windows and the limit of the wait are taken from the present file.

    :param asked_ms: when the person has asked for it, in ms since the epoch; None for now.
    :raises Refused: no switch is ahead, the time is not within the limit of the wait, or the attempt or another
        person's word is younger than this one.
    """
    control = ControlTopic(connection, application.application_id)
    what = f"switch of {application.application_id}"

    def change(state: ControlState) -> Change:
        journal = _to_come(application, state)
        assert_about(what, journal, asked_ms)
        before = Switch.of(journal, state.switch)
        # First: whether there is still a switch to speak about.
        known = before.said(
            order, by, now_ms(), not_before_ms=not_before_ms, reason=reason.strip(), asked_for_ms=asked_ms
        )
        assert_last(what, by, asked_ms, before)
        until = _until_ms(application, known)
        _assert_within(not_before_ms, now_ms(), until)
        limits = {"windows": application.cutover_windows, "until_ms": until if known.has_begun else 0}
        return {Concern.SWITCH: known.model_copy(update=limits)}

    # Read first, so that an order that is refused fences no other process.
    change(control.read())
    state = update_despite_races(control, change)
    assert state.switch is not None
    return state.switch


def say_action(
    application: Application,
    connection: KafkaConnection,
    action: str,
    *,
    by: str,
    until: str = "",
    reason: str = "",
    asked_ms: int | None = None,
) -> str:
    """Note what a person says in the form or in a shell; return what the switch waits for now.

    :param action: one of ``ACTIONS``.
    :param until: for ``postpone``: the time in ISO 8601. Without a time, the switch waits for another order.
    :param asked_ms: when the person has asked for it, in ms since the epoch; None for now.
    :raises InvalidInput: the time can't be read, or the action has none.
    """
    if until and action != POSTPONE:
        # Who gives a time means that time. Without it, the application would be stopped at once.
        raise InvalidInput(
            f"switch of {application.application_id}",
            found=f"`{action}` with the time {until!r}",
            expected=f"a time with `{POSTPONE}` only; nothing was changed",
            remedy=f"For a switch at that time, choose `{POSTPONE}`. For one now, leave the time empty.",
        )
    at_ms = moment_ms(until, application.cutover_windows) if until else 0
    orders = {POSTPONE: Order.WINDOW if at_ms else Order.HOLD, CUT_OVER_NOW: Order.NOW, CANCEL: Order.CANCEL}
    order = orders[action]
    switch = say(application, connection, order, by=by, not_before_ms=at_ms, reason=reason, asked_ms=asked_ms)
    warning = asks_again(application) if action == CANCEL else ""
    return " ".join(filter(None, [told(switch, now_ms()), warning]))


def _beginning(
    application: Application, connection: KafkaConnection, control: ControlTopic, *, asks: bool
) -> Callable[[Switch], Switch]:
    journal = control.read().journal
    kept_ms = tombstone_ms(connection, journal.plan) if journal is not None else None
    return lambda switch: begun_by(application, switch, kept_ms, now_ms(), asks=asks)


def begun_by(
    application: Application, switch: Switch, tombstone_ms: int | None, now_ms: int, *, asks: bool
) -> Switch:
    """Return the record of a switch that is waited for, with the limit and the windows of an application file."""
    longest, windows = application.max_wait_seconds * 1000, application.cutover_windows
    return switch.begun(now_ms, longest, windows, tombstone_ms, asks=asks)


def tombstone_ms(connection: KafkaConnection, plan: Plan) -> int | None:
    """Return how long the copying may be interrupted before a copy may miss deletions; None if without limit."""
    sources = copied_topics(plan)
    topics = ClusterAdmin(connection).describe_topics(sources) if sources else {}
    allowed = [SourceRules.of(topic).tombstone_ms for topic in topics.values()]
    return min((each for each in allowed if each is not None), default=None)


def _write(control: ControlTopic, owner: str, change: Callable[[ControlState, Journal], Switch]) -> Switch:
    """Write the changed record under the lease, which is renewed with it."""

    def under_lease(state: ControlState) -> Change:
        lease = require_owner(state, control.application, owner)
        journal = state.journal
        if journal is None or journal.phase in {Phase.ROLLING_BACK, Phase.ROLLED_BACK}:
            raise UnsafeState(
                f"switch of {control.application}",
                found=f"phase {journal.told}" if journal is not None else "no journal",
                expected="an attempt in progress",
                remedy="Trigger the expansion again: it continues with the copies that exist.",
            )
        return {Concern.SWITCH: change(state, journal), Concern.LEASE: renewed(lease, now_ms(), LEASE_MS)}

    state = update_despite_races(control, under_lease)
    assert state.switch is not None
    return state.switch


def _to_come(application: Application, state: ControlState) -> Journal:
    journal = state.journal
    if journal is None or journal.phase is not Phase.WARMING:
        raise Refused(
            f"switch of {application.application_id}",
            found="no expansion" if journal is None else f"an expansion in phase {journal.told}",
            expected="an expansion whose application has not been stopped yet",
            remedy="Nothing has been changed. Until the promotion, `rollback_<application>` starts the "
            "application again as it was.",
        )
    return journal


def _until_ms(application: Application, switch: Switch) -> int:
    """Return the end of the wait by the present file; before the wait, as if it began now."""
    return (switch.since_ms or now_ms()) + application.max_wait_seconds * 1000


def _assert_within(not_before_ms: int, from_ms: int, until_ms: int) -> None:
    if not not_before_ms:
        return
    if not from_ms <= not_before_ms < until_ms:
        raise Refused(
            "time of the switch",
            found=utc(not_before_ms),
            expected=f"a time between now and {utc(until_ms)}, where `max_wait_seconds` of the file ends the wait",
            remedy="Name another time, or raise `max_wait_seconds` and say it again.",
        )


def _assert_goes_on(application: Application, wait: Wait) -> None:
    if wait.standing in {Standing.CANCELLED, Standing.EXPIRED}:
        raise UnsafeState(
            f"switch of {application.application_id}",
            found=wait.why,
            expected="a switch that is still waited for",
            remedy="Nothing was stopped, and the copies stay. Trigger the expansion again: it goes on with them.",
        )


def _proven_ms(state: ControlState) -> int:
    journal = state.journal
    if journal is None or not is_of(state.proof, journal):
        return 0
    newest = proven_until(state, journal) or Proof.model_validate(state.proof)
    return newest.fences.as_of_ms
