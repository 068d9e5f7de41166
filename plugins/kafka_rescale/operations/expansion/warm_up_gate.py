"""Closing the warm-up gate: green runs behind it only during pre-warming, and must leave nothing."""

from __future__ import annotations

import json
import logging
from hashlib import sha256

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.expansion.prewarming import gate_group, instance_groups, moved, refusals
from kafka_rescale.core.plan.instances import green
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.marks import Mark
from kafka_rescale.kafka.copy.reset import restart
from kafka_rescale.operations.expansion.opening import Opening
from kafka_rescale.operations.expansion.rescale import Rescale

log = logging.getLogger(__name__)


def close_gate(rescale: Rescale, journal: Journal) -> str:
    """Stop green if a pre-warming has started it, and undo whatever it has committed or written.

    Every step that may follow a killed step calls this.

    :param journal: as the step has read it, which may be long ago.
    :returns: what was found and undone, for a person; empty if green has only restored its stores.
    :raises UnsafeState: an instance is alive after ``stop``.
    :raises Fenced: a later try has taken over, another attempt has begun, or the cutover has.
    """
    if not journal.gate_ends:
        return ""
    opening, journal = Opening.shown_by(rescale, journal), rescale.journal()
    if not journal.gate_ends:
        return ""
    opening.check(journal)
    refused = cool_down(rescale, journal.plan, opening)
    trespass = " and ".join([*_undone(journal, opening), *refused])
    if trespass:
        log.error("behind the warm-up gate, %s left %s", journal.plan.green, trespass)
    opening.advance(gate_ends={}, beside_copy=False, gate_copied="")
    return trespass


def cool_down(rescale: Rescale, plan: Plan, opening: Opening | None = None) -> tuple[str, ...]:
    """Stop green completely, and remove it from its groups.

    :param opening: the right to do so, which is looked at behind ``stop``: a process may freeze within it.
    :returns: the writes that the gate has refused. They are read after the stop, because a store flushes its cache
        when it closes.
    :raises UnsafeState: an instance is alive after ``stop``.
    :raises Fenced: ``opening`` does not hold any more.
    """
    instance = green(plan)
    rescale.lifecycle.stop(instance)
    if opening is not None:
        opening.assert_held()
    alone = rescale.admin.groups_like(instance_groups(plan.green))
    left = [m for group in (plan.green, *alone) for m in rescale.admin.remove_members(group)]
    if left or rescale.lifecycle.is_running(instance):
        raise UnsafeState(
            f"application {plan.green}",
            found=f"a running instance after `stop` (members {', '.join(left) or 'none'})",
            expected="every instance gone",
            remedy="Mend the `stop` command: it must return only when all instances have ended.",
        )
    refused = refusals(rescale.admin.committed_metadata(gate_group(plan.green)))
    for group in (*alone, gate_group(plan.green)):
        rescale.admin.delete_group(group)
    return refused


def assert_nothing_committed(rescale: Rescale, plan: Plan) -> None:
    """Refuse offsets in green's group: at its start, green would skip the records before them.

    :raises UnsafeState: there are such offsets.
    """
    committed = rescale.admin.committed(plan.green)
    if committed:
        raise UnsafeState(
            f"group {plan.green}",
            found=f"committed offsets of {', '.join(sorted(committed))}",
            expected="no offsets before the promotion",
            remedy="No step of this expansion has committed them. If nothing needs them, delete the group: "
            f"kafka-consumer-groups.sh --delete --group {plan.green}",
        )


def close_or_refuse(rescale: Rescale, journal: Journal) -> None:
    """Close the gate.

    :raises UnsafeState: green has done more than restore. That is undone by then.
    """
    trespass = close_gate(rescale, journal)
    if trespass:
        raise UnsafeState(
            f"pre-warming of {journal.plan.green}",
            found=trespass,
            expected="neither offsets nor records of it: behind the gate it only restores its stores",
            remedy="Its offsets are deleted now, and copies that are named here are empty. Blue was not touched. "
            "If the gate has refused a write, the application writes by itself, as a wall-clock punctuator does, "
            "and can't be pre-warmed: remove `start_gated`, delete its local state, and trigger the expansion "
            "again with `local_state_deleted` on. If the gate has refused nothing, let `start_gated` set "
            "default.client.supplier to the warm-up gate, and look for what the application may have written to "
            "output topics.",
        )


def _undone(journal: Journal, opening: Opening) -> list[str]:
    rescale, plan = opening.rescale, journal.plan
    admin = rescale.admin
    committed = admin.committed(plan.green)
    written = _written(rescale, journal)
    # With its offsets, green would skip records at its start; with its records, the copies would not be copies.
    if committed:
        opening.assert_held()
        admin.delete_group(plan.green)
    for move in plan.moves:
        if move.target in written:
            opening.assert_held()
            restart(rescale.connection, plan, move, Mark(as_of_ms=now_ms(), attempt=journal.attempt))
    found = [f"committed offsets of {', '.join(sorted(committed))}"] if committed else []
    return [*found, f"records in {', '.join(written)}"] if written else found


def digest_of_copies(rescale: Rescale, plan: Plan) -> str:
    """Return a digest of the marks of the copies. Every job that copies changes a mark, and nothing else does."""
    marks = rescale.admin.committed_metadata(plan.copy_group)
    return sha256(json.dumps(marks, sort_keys=True).encode()).hexdigest()


def _written(rescale: Rescale, journal: Journal) -> tuple[str, ...]:
    """Return the topics that green has written to; none can be told from their ends while they are copied.

    Whatever green were to write, the comparison of what is copied would find, and no promotion would follow. So
    copies are not emptied only because they have gone on.
    """
    if journal.beside_copy:
        return ()
    if journal.gate_copied and digest_of_copies(rescale, journal.plan) != journal.gate_copied:
        log.warning("the copying has gone on behind the warm-up gate: its records are not taken for green's")
        return ()
    return moved(journal.gate_ends, rescale.admin.end_offsets(journal.gate_ends, read_committed=False))
