"""The lease of an application: unlike ``max_active_runs``, it also excludes backfills and shells."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.records import Change
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, LeaseHeld, NotLetIn, Outage, Refused, RescaleError
from kafka_rescale.kafka.control.control_topic import ControlTopic

ATTEMPTS = 8
FIRST_PAUSE_SECONDS = 0.1
"""Doubled with each lost race. A process waits a random part of it: so the same processes don't race again."""


def acquire(
    control: ControlTopic,
    owner: str,
    target: int,
    now_ms: int,
    ttl_ms: int,
    owner_is_finished: Callable[[Lease], bool | None],
    airflow: str = "",
) -> ControlState:
    """Take the lease, or keep it: the same owner may come back as often as it likes.

    A run of the same name in another Airflow is another owner.

    :param owner: ``<dag_id>/<run_id>``, or ``shell/<host>/<pid>``.
    :param target: the partition count aimed at.
    :param ttl_ms: how long after its last renewal an owner that can't be asked keeps the lease.
    :param owner_is_finished: whether the run that holds the lease has ended; None if that can't be found out.
    :param airflow: the Airflow that the owner is a run of.
    :raises LeaseHeld: another owner holds it.
    :raises Refused: an expansion with another target is in progress.
    :raises Fenced: other controllers kept coming in between.
    """

    def change(state: ControlState) -> Change:
        refuse_if_held(control.application, state, owner, now_ms, owner_is_finished, airflow)
        _refuse_other_target(state, target)
        return {Concern.LEASE: granted(state.lease, owner, target, now_ms + ttl_ms, airflow)}

    return update_despite_races(control, change)


def granted(lease: Lease | None, owner: str, target: int, expires_at_ms: int, airflow: str) -> Lease:
    """Return the lease for an owner, who may have it already.

    :param lease: the present lease.
    :param airflow: the Airflow that the owner is a run of; if it is empty, an owner that comes back keeps its own.
    """
    if lease is not None and not lease.released and lease.is_of(owner, airflow):
        return lease.model_copy(
            update={"target": target, "expires_at_ms": expires_at_ms, "airflow": airflow or lease.airflow}
        )
    epoch = (lease.epoch if lease else 0) + 1
    return Lease(owner=owner, epoch=epoch, target=target, expires_at_ms=expires_at_ms, airflow=airflow)


def update_despite_races(
    control: ControlTopic,
    change: Callable[[ControlState], Change],
    lost: tuple[type[RescaleError], ...] = (Fenced, Outage),
) -> ControlState:
    """Write what ``change`` returns, even if other controllers come in between.

    :param change: decides anew in every try. If it raises, nothing is written.
    :param lost: the errors after which to try again. After ``Fenced`` nothing was written; after ``Outage`` the
        change may have been written. If a change must not be made twice, and can't see that it was made, try again
        only after ``Fenced``.
    :returns: the state as written, or the state in which there is nothing to change.
    :raises Fenced: other controllers kept coming in between.
    """
    for attempt in range(ATTEMPTS):
        try:
            return control.update(change)
        except NotLetIn:
            # No race. Whoever waits for brokers knows how long to wait for this.
            raise
        except lost:
            # Lost a race. If the winner has written by now, this read tells it without fencing any process.
            time.sleep(random.uniform(0, FIRST_PAUSE_SECONDS * 2**attempt))
            state = control.read()
            if not change(state):
                return state
    return control.update(change)


def renewed(lease: Lease, now_ms: int, ttl_ms: int) -> Lease:
    """Return the lease with another ``ttl_ms``; every change of the journal writes it."""
    return lease.model_copy(update={"expires_at_ms": now_ms + ttl_ms})


def release(control: ControlTopic, owner: str) -> ControlState:
    """Give the lease back, unless another owner has it by now.

    :raises Fenced: another controller came in between.
    """

    def change(state: ControlState) -> Change:
        lease = state.lease
        if lease is None or lease.owner != owner or lease.released:
            return {}
        return {Concern.LEASE: lease.model_copy(update={"released": True})}

    return control.update(change)


def require_owner(state: ControlState, application: str, owner: str) -> Lease:
    """Return the lease of ``owner``.

    :raises Fenced: the owner doesn't hold it, or not any more.
    """
    lease = state.lease
    if lease is None or lease.holder != owner:
        raise Fenced(
            f"lease of {application}",
            found=f"{(lease and lease.holder) or 'nobody'} holding it",
            expected=f"{owner} holding it",
            remedy="Nothing to do here: another run has gone on with this application, or a person has ended this "
            "one. It has changed nothing since. Look at the other run.",
        )
    return lease


def refuse_if_held(
    application: str,
    state: ControlState,
    owner: str,
    now_ms: int,
    owner_is_finished: Callable[[Lease], bool | None],
    airflow: str = "",
) -> None:
    """Refuse early what acquiring the lease would refuse; only acquiring it decides.

    A run that is known to go on keeps the lease as long as it does: copying terabytes, or an approval, may take
    days.

    :param airflow: the Airflow that the owner is a run of; empty if that is not known.
    :raises LeaseHeld: another owner, whose run has not ended, holds it.
    """
    lease, journal = state.lease, state.journal
    if lease is None or lease.released or lease.is_of(owner, airflow):
        return
    finished = owner_is_finished(lease)
    if finished or (finished is None and lease.expires_at_ms <= now_ms):
        return
    who = f"{lease.owner}{_elsewhere(lease, airflow)}"
    phase = f", with an expansion in phase {journal.told}" if journal is not None and journal.in_progress else ""
    raise LeaseHeld(
        f"application {application!r}",
        found=f"a rescale to {lease.target} partitions by {who} that has not ended{phase}",
        expected="no other rescale of it",
        remedy=f"Wait for {lease.owner}, or stop it; `python -m kafka_rescale status FILE` shows what it does.",
    )


def _elsewhere(lease: Lease, airflow: str) -> str:
    return f" of Airflow {lease.airflow}, while this is Airflow {airflow}," if lease.is_of_another(airflow) else ""


def _refuse_other_target(state: ControlState, target: int) -> None:
    journal = state.journal
    if journal is None or not journal.in_progress or journal.plan.partitions == target:
        return
    raise Refused(
        f"expansion of {journal.plan.application}",
        found=f"an expansion to {journal.plan.partitions} partitions in progress (phase {journal.told})",
        expected=f"that target, not {target}",
        remedy=journal.way_on,
    )
