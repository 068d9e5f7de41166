"""Starting the copy of a topic from scratch. It may be killed at any instruction, and it fences zombies.

1. Fence all writers of the topic, then read the journal. A zombie also fences others, but the journal stops it
   here. Ask for the target's ends: an older attempt writes no record behind them any more.
2. Commit the mark "resetting": from now on every attempt begins here.
3. Empty the target up to those ends. The commit has proven that no other attempt had fenced this one by then. So
   every newer attempt finds the mark, and empties the target as well. A zombie that deletes late only deletes
   records that the newer attempt has deleted too.
4. Commit the new positions. Copying begins only when every partition has a position.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from confluent_kafka import Consumer

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms as clock_ms
from kafka_rescale.kafka.client.waiting import poll_until
from kafka_rescale.kafka.control.journal_store import assert_current
from kafka_rescale.kafka.copy.bucket import Bucket
from kafka_rescale.kafka.copy.marks import RESETTING, SEEDING, Mark, Position, read_positions
from kafka_rescale.kafka.copy.units import buckets_of, units_of
from kafka_rescale.kafka.reading.committed import closing_consumer
from kafka_rescale.kafka.reading.source_rules import SourceRules

log = logging.getLogger(__name__)

POLICY_SECONDS = 30.0
FENCING_THREADS = 8


def restart_stale(
    connection: KafkaConnection,
    plan: Plan,
    moves: Sequence[Move],
    now_ms: int,
    *,
    attempt: int,
    prewarmed: bool = False,
) -> list[str]:
    """Restart the copy of every changelog whose copy can't go on; return one line for each.

    :param now_ms: wall clock.
    :param attempt: number of the attempt in the journal when the job began.
    :param prewarmed: whether green has restored these copies; then a copy must not be restarted under it.
    :raises Fenced: a newer attempt has taken over.
    :raises UnsafeState: a copy would have to be restarted, but green has restored it.
    """
    admin = ClusterAdmin(connection)
    fence(connection, plan, moves)
    with closing_consumer(connection, plan.copy_group) as consumer:
        reasons = {m: _reason(admin, consumer, m, now_ms) for m in moves}
    if prewarmed and any(reasons.values()):
        raise _restored_already(plan, reasons)
    lines = []
    for move, reason in reasons.items():
        if reason:
            lines.append(f"the copy of {move.source} starts from scratch: {reason}")
            log.warning(lines[-1])
            restart(connection, plan, move, Mark(as_of_ms=now_ms, attempt=attempt))
    return lines


def restart(connection: KafkaConnection, plan: Plan, move: Move, mark: Mark) -> None:
    """Empty a move's target and set all positions to the log starts of the source.

    :param mark: the mark of the new positions, with the attempt that asks for the restart.
    :raises Fenced: a newer attempt has taken over, or green has taken over.
    :raises UnsafeState: the target is the source itself.
    """
    _assert_apart(move)
    admin, mark = ClusterAdmin(connection), replace(mark, restarted_ms=clock_ms())
    with closing_consumer(connection, plan.copy_group) as consumer:
        divided = buckets_of(units_of([move]))
        with ThreadPoolExecutor(max_workers=min(FENCING_THREADS, len(divided))) as pool:
            buckets = list(pool.map(lambda units: Bucket(connection, units, plan.green), divided))
            assert_current(connection, plan, mark.attempt)
            ends = admin.end_offsets([move.target], read_committed=False)
            resetting = Position(0, Mark(attempt=mark.attempt, state=RESETTING, restarted_ms=mark.restarted_ms))

            def leave_mark() -> None:
                list(pool.map(lambda b: b.commit_at(consumer, dict.fromkeys(b.writers, resetting)), buckets))

            leave_mark()
            empty(admin, move, ends, leave_mark)
            begins = admin.begin_offsets([move.source])[move.source]
            new = {(move.source, partition): Position(begin, mark) for partition, begin in begins.items()}
            list(pool.map(lambda b: b.commit_at(consumer, {s: new[s] for s in b.writers}), buckets))


def fence(connection: KafkaConnection, plan: Plan, moves: Iterable[Move]) -> None:
    """Fence every writer of some moves: until the next job begins, no writer can write to their targets.

    This aborts a transaction that a killed writer has left open. As long as it is open, the coordinator does not
    tell the positions in it: a reader would have to wait for the transaction's end, a minute at most.

    :raises Outage: the transaction coordinator does not answer.
    """
    divided = buckets_of(units_of(moves))
    with ThreadPoolExecutor(max_workers=max(1, min(FENCING_THREADS, len(divided)))) as pool:
        list(pool.map(lambda units: Bucket(connection, units, plan.green).abort(), divided))


def empty(admin: ClusterAdmin, move: Move, ends: PartitionOffsets, leave_mark: Callable[[], None]) -> None:
    """Delete every record of a move's target below some ends.

    Brokers delete records only if ``delete`` is a cleanup policy. A compacted target gets that policy for a
    moment. An attempt that dies in that moment leaves the mark, so that the next attempt comes here again.

    :param ends: ends of the target (exclusive), read before the mark was committed.
    :param leave_mark: commits the mark once more, or raises ``Fenced``. So the policy is never changed under a
        newer attempt: retention would delete the records that it has copied.
    :raises UnsafeState: the target is the source itself.
    """
    _assert_apart(move)
    described = admin.existing_topics([move.source, move.target])
    wanted = described[move.source].overrides.get("cleanup.policy")
    target = described[move.target]
    if "delete" in target.cleanup_policy and wanted == target.overrides.get("cleanup.policy"):
        admin.delete_records(ends)
        return
    leave_mark()
    admin.alter_configs(move.target, {"cleanup.policy": "compact,delete"})
    try:
        _delete_when_allowed(admin, ends)
    finally:
        admin.alter_configs(move.target, {"cleanup.policy": wanted})


def _assert_apart(move: Move) -> None:
    if move.is_in_place:
        raise UnsafeState(
            f"topic {move.source!r}",
            found="a topic that grows in place, which a copy wants to empty",
            expected="a successor that only the copy writes to",
            remedy="Use the steps of an expansion in place: `rehearse`, `move`, `cutover`.",
        )


def _delete_when_allowed(admin: ClusterAdmin, ends: PartitionOffsets) -> None:
    """Delete records. Try again if need be: a broker may know the new policy a moment after it is described."""
    refusals: list[UnsafeState] = []

    def deleted() -> bool:
        try:
            admin.delete_records(ends)
        except UnsafeState as refusal:
            if "POLICY_VIOLATION" not in refusal.found:
                raise
            refusals.append(refusal)
            return False
        return True

    poll_until(deleted, seconds=POLICY_SECONDS, otherwise=lambda: refusals[-1])


def _restored_already(plan: Plan, reasons: Mapping[Move, str]) -> UnsafeState:
    """Refuse to restart copies that green has restored: its local stores would keep deleted entries.

    Only the first copy had those deletions. With at-least-once, Kafka Streams does not even wipe a store whose
    position is gone from its changelog.
    """
    stale = [f"{move.source} ({reason})" for move, reason in reasons.items() if reason]
    return UnsafeState(
        f"copies of {', '.join(stale)}",
        found=f"copies that have to start from scratch, which {plan.green} has been pre-warmed with",
        expected="copies that only go on after the pre-warming",
        remedy="Trigger the expansion again: it copies from scratch, and pre-warms anew with empty local stores.",
    )


def _reason(admin: ClusterAdmin, consumer: Consumer, move: Move, now_ms: int) -> str:
    """Return why a copy can't go on, or an empty text."""
    source = admin.existing_topics([move.source])[move.source]
    allowed = SourceRules.of(source).tombstone_ms
    marks = [p.mark for p in read_positions(consumer, [u.source for u in units_of([move])]).values()]
    begins = sum(admin.begin_offsets([move.target])[move.target].values())
    # A commit returns before its markers are in the log: a read_committed end may still lie before its records.
    ends = sum(admin.end_offsets([move.target], read_committed=False)[move.target].values())
    if not marks:
        return "its target holds records of an unknown origin" if ends > begins else ""
    if said := _said_by(marks, move):
        return said
    age = now_ms - min(mark.as_of_ms for mark in marks)
    if allowed is not None and age > allowed:
        return f"it paused for {age / 1000:.1f} s, and deletions are kept for {allowed / 1000:.1f} s only"
    if ends < sum(mark.records for mark in marks):
        return "its target was truncated or recreated"
    return ""


def _said_by(marks: Sequence[Mark], move: Move) -> str:
    """Return the reason in the marks why a copy can't go on, or an empty text."""
    if any(mark.state == RESETTING for mark in marks):
        return "an earlier restart was interrupted"
    if any(mark.state == SEEDING for mark in marks):
        return "writing the rows of a snapshot was interrupted"
    if any(mark.fingerprint not in {"", move.fingerprint} for mark in marks):
        return "it was made by another declaration, and its keys may be in other partitions"
    return ""
