"""Pre-warming: green is started behind the warm-up gate, restores its stores, and is stopped again.

At the cutover, green then only has to restore the records that were copied since.

1. Stop whatever an earlier attempt left behind the gate, and fence every writer of the copies. From here on, the
   ends of green's topics move only if green itself writes. The journal keeps these ends.
2. Let green restore (``behind_gate``), and stop it. Remove its members from its group, so that no start waits for
   a session timeout.
3. Prove that green committed nothing and wrote nothing. If it did, undo that: blue was never touched.

If the switch is waited for, green restores again shortly before it (``rewarm``).
"""

from __future__ import annotations

import logging

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.warmth import Warmth
from kafka_rescale.core.errors import Refused
from kafka_rescale.kafka.admin.transactions import wait_until_complete
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.reset import fence
from kafka_rescale.lifecycle.factory import gated_start
from kafka_rescale.operations.expansion.behind_gate import Restored, restore_behind_gate, total, unattended_start
from kafka_rescale.operations.expansion.compaction import hold_deletions
from kafka_rescale.operations.expansion.opening import Opening
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.warm_up_gate import (
    assert_nothing_committed,
    close_or_refuse,
    digest_of_copies,
)

log = logging.getLogger(__name__)

NOT_DECLARED = "the application file declares no `start_gated` in its `lifecycle:`"
NO_STORES = "the application has no store of its own to restore"


def prewarm(
    application: Application,
    connection: KafkaConnection,
    *,
    owner: str,
    local_state_deleted: bool = False,
    airflow: str = "",
) -> dict[str, float] | None:
    """Let green restore its stores ahead of the cutover.

    The process may be killed at any instruction. Then this can be called again.

    :param owner: the run that holds the lease.
    :param local_state_deleted: whether a person says that no local state of an earlier pre-warming is left.
    :param airflow: the Airflow that the owner is a run of; empty if that is not known.
    :returns: seconds per part; None if green can't be pre-warmed. The log says why.
    :raises Refused: green can't be pre-warmed, and an earlier pre-warming has left local state.
    :raises Outage: green could not be started, or did not restore in time.
    :raises UnsafeState: the attempt was rolled back; or green committed or wrote something. That has been undone,
        and blue was never touched.
    """
    rescale = Rescale.open(application, connection, owner, airflow)
    journal = rescale.journal()
    journal.assert_not_rolled_back()
    start = gated_start(application, rescale.lifecycle)
    if not journal.plan.changelogs:
        log.info("not pre-warmed: %s", NO_STORES)
        return None
    if start is None:
        _assert_cold(rescale, journal, deleted=local_state_deleted)
        log.warning("not pre-warmed, so green will restore its stores within the pause: %s", NOT_DECLARED)
        return None
    if journal.phase is not Phase.WARMING:
        log.info("nothing to pre-warm in phase %s", journal.phase)
        return dict(journal.prewarmed)
    opening = Opening.take(rescale, journal)
    close_or_refuse(rescale, opening.assert_held())
    restored = restore_behind_gate(opening, start, lambda: _open_gate(opening, journal), keep=False)
    opening.advance(prewarmed=dict(restored.timings), warmth=_warmth(rescale, restored))
    log.info("green has restored its stores ahead of the pause: %s", restored.timings)
    return dict(restored.timings)


def _assert_cold(rescale: Rescale, journal: Journal, *, deleted: bool) -> None:
    """Refuse local state of an earlier pre-warming, unless a person says that it is deleted.

    This run does not pre-warm, so the gate will not delete that state. The copies may have been made anew since.
    Then they may lack the deletions of entries that this state still has.
    Green would restore on top of this state and keep the deleted entries. ``verify`` would not notice, because it
    reads only changelogs.
    """
    if not journal.was_warm or journal.phase is not Phase.WARMING:
        return
    if not deleted:
        raise Refused(
            f"local state of {journal.was_warm}",
            found="what an earlier pre-warming has restored, while this run does not pre-warm",
            expected="no such state, or a pre-warming: at its start, the gate deletes the state",
            remedy=f"Delete the directory `{journal.was_warm}` below `state.dir` of every instance, and trigger "
            "the expansion again with `local_state_deleted` on; its copies stay. Or declare `start_gated` again.",
        )
    rescale.advance(journal.phase, was_warm="", prewarmed={}, warmth=None, deletions_kept_until_ms=0)


def _open_gate(opening: Opening, journal: Journal) -> Journal:
    """Prepare everything that the proof needs, and note in the journal that green may run."""
    rescale, plan = opening.rescale, journal.plan
    admin = rescale.admin
    targets = [m.target for m in plan.moves]
    opening.assert_held()
    assert_nothing_committed(rescale, plan)
    # A late process would fence the copying of a later try, within the pause perhaps.
    journal = opening.assert_held()
    fence(rescale.connection, plan, plan.moves)
    wait_until_complete(admin, targets)
    # Green restores later deletions only when it starts after the promotion. If compaction removed a deletion
    # before that, the entry would live on in green's store.
    until_ms = hold_deletions(rescale, journal)
    ends = admin.end_offsets(targets, read_committed=False)
    return opening.advance(
        gate_ends=ends,
        gate_copied=digest_of_copies(rescale, plan),
        prewarmed={},
        warmth=None,
        was_warm=plan.green,
        deletions_kept_until_ms=until_ms,
    )


def _warmth(rescale: Rescale, restored: Restored) -> Warmth | None:
    """Return how far green has restored, and how fast; None if it will not restore again before its switch."""
    if unattended_start(rescale) is None:
        return None
    if not restored.keeps:
        log.warning(
            "green will not restore again before its switch, however long that is waited for: its instances have "
            "not said that they can keep their local state. The gate's jar is of an earlier version, or the "
            "program passes a gate to KafkaStreams without calling its `configure`."
        )
        return None
    ends = {m.target: restored.ends[m.target] for m in rescale.journal().plan.changelogs}
    offsets, seconds = total(ends), restored.timings["restore"]
    copied = offsets - total(rescale.admin.begin_offsets(ends))
    pace = max(copied, 1) / max(seconds, 0.001)
    return Warmth(offsets=offsets, per_second=pace, seconds=seconds, checked_ms=now_ms())
