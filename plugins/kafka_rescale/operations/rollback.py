"""Back to blue as it was; possible until the promotion, because nothing of blue has been changed by then."""

from __future__ import annotations

import logging

from kafka_rescale.core.application import Application
from kafka_rescale.core.journal import Journal, Phase
from kafka_rescale.kafka import lease
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.waiting import now_ms, wait_until
from kafka_rescale.operations import producers
from kafka_rescale.operations.compaction import release_compaction
from kafka_rescale.operations.gate import close_gate
from kafka_rescale.operations.rescale import Rescale, blue

log = logging.getLogger(__name__)

START_SECONDS = 60.0


def roll_back(
    application: Application, connection: KafkaConnection, *, owner: str, reason: str, take_over: bool = False
) -> str:
    """Start blue again if it was stopped, and close the attempt.

    Copies stay where they are: a new run continues with them.

    :param owner: the run that holds the lease; without it nothing is changed.
    :param reason: goes to the log.
    :param take_over: take the lease from whoever holds it: a person's decision.
    :returns: what was done, for a person.
    """
    rescale = Rescale.open(application, connection, owner)
    state = rescale.control.read()
    journal = state.journal
    if journal is None or state.lease is None:
        return "nothing to roll back: no expansion is in progress"
    if journal.phase is Phase.ROLLED_BACK and state.lease.owner == owner:
        return f"rolled back before, by the task that failed; {_of_blue(journal)}"
    if not journal.in_progress:
        return "nothing to roll back: no expansion is in progress"
    if journal.is_promoted:
        return _only_forward(journal)
    if state.lease.owner != owner and not take_over:
        return f"not rolled back: {state.lease.owner} holds the lease"
    if state.lease.owner != owner:
        lease.acquire(
            rescale.control,
            owner,
            journal.plan.partitions,
            now_ms=now_ms(),
            ttl_ms=state.lease.expires_at_ms - now_ms(),
            owner_is_finished=lambda _: True,
        )
    log.warning("rolling back %s: %s", journal.plan.green, reason)
    # Recorded first: a cutover that wakes up late must find that it has lost before blue is started again.
    rescale.advance(Phase.ROLLING_BACK)
    if journal.stop_asked:
        _restart_blue(rescale, journal)
    if journal.pause_started_ms:
        producers.release(rescale)
    close_gate(rescale, journal)
    if journal.plan.is_in_place:
        release_compaction(rescale, journal)
    rescale.advance(Phase.ROLLED_BACK)
    return f"rolled back; {_of_blue(journal)}"


def _of_blue(journal: Journal) -> str:
    return f"{journal.plan.blue} {'was started again' if journal.stop_asked else 'was never touched'}"


def _only_forward(journal: Journal) -> str:
    if journal.plan.is_in_place:
        return (
            f"not rolled back: the topics of {journal.plan.green} grow, and none can shrink; only forward. Clear "
            "the failed task, or trigger the expansion again: it goes on where it is"
        )
    return f"not rolled back: {journal.plan.green} owns the inputs since its promotion; only forward"


def _restart_blue(rescale: Rescale, journal: Journal) -> None:
    """Start blue, whether it runs, is stopped, or is being stopped.

    A ``stop`` command outlives a killed task: blue may look alive and go down a moment later. Stopping it for good
    first makes the outcome certain.
    """
    instance = blue(journal.plan)
    rescale.lifecycle.stop(instance)
    # A classic member lingers after a clean close, and a new start would wait for its session timeout.
    rescale.admin.remove_members(journal.plan.blue)
    rescale.lifecycle.start(instance)
    wait_until(
        lambda: rescale.lifecycle.is_running(instance),
        seconds=START_SECONDS,
        what=f"{instance.application_id} to run again",
        remedy="START IT BY HAND NOW: it is down. Then retry the rollback.",
    )
