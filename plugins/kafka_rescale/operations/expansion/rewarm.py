"""Green restores again behind the warm-up gate, shortly before a switch that was waited for.

Hours may pass between the pre-warming and the switch. Whatever is copied meanwhile, green would restore within
the pause. So it is started behind the gate once more, with its local state, while the copying goes on. Nothing is
fenced for that: the pre-warming has proven that this gate lets nothing through, and the comparison that the
promotion requires would find a record of green's in a copy.
"""

from __future__ import annotations

import logging
import time

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Switch
from kafka_rescale.core.expansion.prewarming import AGAIN
from kafka_rescale.core.expansion.rewarming import WORTH_SECONDS, is_due, is_hurried
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.lease import require_owner
from kafka_rescale.lifecycle.factory import gated_start
from kafka_rescale.operations.expansion.behind_gate import changelog_ends, restore_behind_gate, total
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.warm_up_gate import assert_nothing_committed, close_or_refuse

log = logging.getLogger(__name__)

ROUNDS = 3
"""While green restores, more is copied: each round has less to restore than the round before."""
ASK_SECONDS = 5.0


def restore_again(application: Application, connection: KafkaConnection, *, owner: str) -> None:
    """Let green restore what was copied since it was warm, if its switch is near and that takes some seconds.

    The process may be killed at any instruction. Then this can be called again. An order of a person to cut over
    at once, or to cancel, ends it: what is restored by then stays.

    :param owner: the run that holds the lease.
    :raises Outage: green could not be started, or did not restore in time.
    :raises UnsafeState: green committed something, or the gate has refused what it wrote.
    :raises Fenced: another run holds the lease.
    """
    rescale = Rescale.open(application, connection, owner)
    state = rescale.control.read()
    require_owner(state, application.application_id, owner)
    journal = state.journal
    if journal is None or journal.phase is not Phase.WARMING:
        return
    close_or_refuse(rescale, journal)
    warmth = journal.warmth
    if warmth is None or not is_due(warmth, _switch(application, journal, state), now_ms()):
        return
    for _ in range(ROUNDS):
        missing = warmth.missing(total(changelog_ends(rescale, journal)))
        if missing < WORTH_SECONDS or not _restored(rescale, journal, missing):
            break
        warmth = rescale.journal().warmth
        assert warmth is not None
    rescale.advance(Phase.WARMING, warmth=warmth.checked(now_ms()))


def _restored(rescale: Rescale, journal: Journal, missing: float) -> bool:
    """Let green restore up to the present ends, and return whether it did; not if nobody waits for that."""
    start = gated_start(rescale.application, rescale.lifecycle)
    if start is None:
        return False
    plan = journal.plan
    log.info(
        "%s would restore for about %.0f s within the pause what was copied since it was warm. It does that "
        "behind the gate now; `cut-over-now` goes on without it.",
        plan.green,
        missing,
    )
    ends: PartitionOffsets = {}

    def opened() -> Journal:
        assert_nothing_committed(rescale, plan)
        ends.update(changelog_ends(rescale, journal))
        return rescale.advance(Phase.WARMING, gate_ends=dict(ends), beside_copy=True)

    hurry = _Hurry(rescale)
    timings = restore_behind_gate(rescale, start, opened, keep=True, is_given_up=hurry.is_on)
    if hurry.was_on:
        log.warning("%s has not restored all of it: a person has said so.", plan.green)
        return False
    known = rescale.journal()
    assert known.warmth is not None
    again = round(known.prewarmed.get(AGAIN, 0.0) + timings["restore"], 3)
    rescale.advance(
        Phase.WARMING,
        warmth=known.warmth.restored(total(ends), timings["restore"]),
        prewarmed={**known.prewarmed, AGAIN: again},
    )
    log.info("%s has restored what was copied since it was warm: %s", plan.green, timings)
    return True


class _Hurry:
    """Asks every few seconds whether a person wants the switch at once, or not at all."""

    def __init__(self, rescale: Rescale) -> None:
        self._rescale, self._asked_at, self.was_on = rescale, time.monotonic(), False

    def is_on(self) -> bool:
        if time.monotonic() - self._asked_at >= ASK_SECONDS:
            self._asked_at = time.monotonic()
            state = self._rescale.control.read()
            switch = state.switch
            self.was_on = state.journal is not None and is_hurried(Switch.of(state.journal, switch))
        return self.was_on


def _switch(application: Application, journal: Journal, state: ControlState) -> Switch:
    """Return the record of the switch with the limit and the windows of the present file."""
    longest, windows = application.max_wait_seconds * 1000, application.cutover_windows
    found = Switch.of(journal, state.switch)
    return found.begun(now_ms(), longest, windows, found.tombstone_ms, asks=found.asked)
