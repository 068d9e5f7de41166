"""Green restores again behind the warm-up gate, shortly before a switch that was waited for.

Hours may pass between the pre-warming and the switch. Whatever is copied meanwhile, green would restore within
the pause. So it is started behind the gate once more, with its local state, while the copying goes on. Nothing is
fenced for that: the pre-warming has proven that this gate lets nothing through, and the comparison that the
promotion requires would find a record of green's in a copy.
"""

from __future__ import annotations

import logging
import math
import time

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Switch
from kafka_rescale.core.control.warmth import Warmth
from kafka_rescale.core.expansion.prewarming import AGAIN
from kafka_rescale.core.expansion.rewarming import WORTH_SECONDS, is_due, must_end
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.lease import require_owner
from kafka_rescale.lifecycle.factory import Start
from kafka_rescale.operations.expansion.behind_gate import (
    GivenUp,
    changelog_ends,
    restore_behind_gate,
    total,
    unattended_start,
)
from kafka_rescale.operations.expansion.compaction import kept_until
from kafka_rescale.operations.expansion.opening import Opening
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.switch import begun_by
from kafka_rescale.operations.expansion.warm_up_gate import assert_nothing_committed, close_or_refuse

log = logging.getLogger(__name__)

ROUNDS = 3
"""While green restores, more is copied: each round has less to restore than the round before."""
ASK_SECONDS = 5.0


def restore_again(application: Application, connection: KafkaConnection, *, owner: str) -> None:
    """Let green restore what was copied since it was warm, if its switch is near and that takes some seconds.

    The process may be killed at any instruction. Then this can be called again. An order of a person to cut over
    at once, or to cancel, ends it, and so does the end of a window: what is restored by then stays.

    If it fails, the switch does not begin: green may be cold by then, and would restore everything within the
    pause.

    :param owner: the run that holds the lease.
    :raises Outage: green could not be started, or did not restore in time.
    :raises UnsafeState: green committed something, or the gate has refused what it wrote.
    :raises Fenced: another run holds the lease, or a later try has taken over.
    """
    rescale = Rescale.open(application, connection, owner)
    state = rescale.control.read()
    require_owner(state, application.application_id, owner)
    journal = state.journal
    if journal is None or journal.phase is not Phase.WARMING:
        return
    warmth = journal.warmth
    due = warmth is not None and is_due(warmth, _switch(application, state, journal), now_ms())
    if not due and not journal.gate_ends:
        return
    opening = Opening.take(rescale, journal)
    # What a killed try has left behind the gate.
    close_or_refuse(rescale, opening.assert_held())
    if due and warmth is not None:
        _Again(opening).restore(warmth)


class _Again:
    """The second restoring of one try.

    :param opening: the right to do so.
    """

    def __init__(self, opening: Opening) -> None:
        self.opening, self._rescale = opening, opening.rescale
        self._asked_at = -math.inf

    def restore(self, warmth: Warmth) -> None:
        """Restore until little is missing, and note that it was decided."""
        start = unattended_start(self._rescale)
        for _ in range(ROUNDS):
            missing = warmth.missing(total(self._ends()))
            if start is None or missing < WORTH_SECONDS:
                break
            try:
                warmth = self._restore_once(start, warmth, missing)
            except GivenUp:
                log.warning("green has not restored all of it: the switch is wanted now, or its window ends")
                break
        self.opening.advance(warmth=warmth.checked(now_ms()))

    def _restore_once(self, start: Start, warmth: Warmth, missing: float) -> Warmth:
        """Let green restore up to the present ends, and return how far it is.

        :raises GivenUp: nobody waits for that any more.
        """
        log.info(
            "green would restore for about %.0f s within the pause what was copied since it was warm. It does "
            "that behind the gate now; `cut-over-now` goes on without it.",
            missing,
        )
        self._asked_at = -math.inf
        # What has been copied up to here is restored now; later deletions are kept for as long again.
        is_limited, until_ms = self.opening.assert_held().deletions_kept_until_ms, kept_until()
        restored = restore_behind_gate(
            self.opening, start, self._open_gate, keep=True, is_given_up=self._is_given_up
        )
        seconds, known = restored.timings["restore"], self.opening.assert_held().prewarmed
        warmth = warmth.restored(total(restored.ends), seconds)
        prewarmed = {**known, AGAIN: round(known.get(AGAIN, 0.0) + seconds, 3)}
        kept = {"deletions_kept_until_ms": until_ms} if is_limited else {}
        self.opening.advance(warmth=warmth, prewarmed=prewarmed, **kept)
        log.info("green has restored what was copied since it was warm: %s", restored.timings)
        return warmth

    def _open_gate(self) -> Journal:
        if self._is_given_up():
            raise GivenUp
        assert_nothing_committed(self._rescale, self.opening.assert_held().plan)
        return self.opening.advance(gate_ends=self._ends(), beside_copy=True)

    def _ends(self) -> PartitionOffsets:
        return changelog_ends(self._rescale, self.opening.assert_held())

    def _is_given_up(self) -> bool:
        """Ask every few seconds what is said about the switch, and whether this try may go on at all."""
        if time.monotonic() - self._asked_at < ASK_SECONDS:
            return False
        self._asked_at = time.monotonic()
        state = self._rescale.control.read()
        require_owner(state, self._rescale.application.application_id, self._rescale.owner)
        assert state.journal is not None
        self.opening.check(state.journal)
        return must_end(_switch(self._rescale.application, state, state.journal), now_ms())


def _switch(application: Application, state: ControlState, journal: Journal) -> Switch:
    """Return the record of the switch with the limit and the windows of the present file."""
    found = Switch.of(journal, state.switch)
    return begun_by(application, found, found.tombstone_ms, now_ms(), asks=found.asked)
