"""Records in flight between sub-topologies, from blue's processed offsets on; they move once blue is stopped."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.journal import Captured
from kafka_rescale.core.errors import Fenced, UnsafeState
from kafka_rescale.core.formats.sequences import Sequences, differences
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.topic_reader import assert_all_listed
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.copy.marks import EMPTIED, RESETTING, Mark, read_positions
from kafka_rescale.kafka.copy.reset import fence, restart
from kafka_rescale.kafka.copy.router import Router
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.reading.committed import closing_consumer
from kafka_rescale.kafka.reading.range_reader import read_ranges

log = logging.getLogger(__name__)


def prepare(connection: KafkaConnection, plan: Plan, moves: Iterable[Move], attempt: int) -> None:
    """Empty the targets, unless this attempt at the cutover has done so already and has aborted nothing since.

    Blue has processed the records that a rolled-back attempt moved, or they will be moved again. With
    ``at_least_once``, green reads uncommitted records: it would process the records of an aborted transaction, and
    then the same records again from the transaction that replaced it.

    :param attempt: number of the attempt in the journal.
    :raises Fenced: a newer process or attempt has taken over, or green has taken over.
    """
    with closing_consumer(connection, plan.copy_group) as consumer:
        for move in moves:
            fence(connection, plan, [move])
            sources = [unit.source for unit in units_of([move])]
            marks = [p.mark for p in read_positions(consumer, sources).values()]
            _assert_newest(plan, move, marks, attempt)
            ours = len(marks) == len(sources) and all(m.attempt == attempt and m.state != RESETTING for m in marks)
            if not ours or _has_aborted(connection, move, marks):
                restart(connection, plan, move, Mark(attempt=attempt, state=EMPTIED))
                log.info("%s is empty for attempt %d", move.target, attempt)


def _assert_newest(plan: Plan, move: Move, marks: Sequence[Mark], attempt: int) -> None:
    """Refuse an older attempt that wakes up late. It has fenced the newer one, but must not empty its targets."""
    newest = max((mark.attempt for mark in marks), default=0)
    if newest > attempt:
        raise Fenced(
            f"records in flight from {move.source} to {move.target}",
            found=f"records of attempt {newest} in group {plan.copy_group!r}",
            expected=f"attempt {attempt} to be the newest",
            remedy="Nothing to do here: the newer attempt goes on. Unless the control topic was lost and attempts "
            "count from 1 again: then delete that group and trigger again; everything is copied anew.",
        )


def _has_aborted(connection: KafkaConnection, move: Move, marks: Sequence[Mark]) -> bool:
    """Return whether a target holds more records than were committed. A running green may have deleted records."""
    admin = ClusterAdmin(connection)
    begins = admin.begin_offsets([move.target])[move.target]
    ends = admin.end_offsets([move.target], read_committed=False)[move.target]
    ranges = {p: (begins[p], end) for p, end in ends.items()}
    found = sum(1 for _ in read_ranges(connection, move.target, ranges, committed=False))
    return found > sum(mark.records for mark in marks)


def starts_and_ends(
    captured: Captured, sources: Iterable[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return the captured range of every repartition partition, as starts and ends (exclusive)."""
    ranges = {(topic, partition): captured.in_flight[topic][partition] for topic, partition in sources}
    return {s: start for s, (start, _) in ranges.items()}, {s: end for s, (_, end) in ranges.items()}


def prove(connection: KafkaConnection, move: Move, in_flight: Mapping[int, tuple[int, int]]) -> int:
    """Compare the moved records with their source, per key and in order; return their number.

    Subscriptions of foreign-key joins are compared in the form that green needs. The target's uncommitted records
    are read as well, because green may read them. In place, only committed records are read: aborted records can't
    be deleted there.

    :param in_flight: per source partition, blue's processed offset and the end (exclusive).
    :raises UnsafeState: a record is missing, doubled, changed, out of order or in the wrong partition.
    :raises ClusterOutage: a broker does not know yet that the target has grown.
    """
    admin = ClusterAdmin(connection)
    begins = admin.begin_offsets([move.target])[move.target]
    if move.is_in_place:
        begins |= {p: end for p, (_, end) in in_flight.items()}
    ends = admin.end_offsets([move.target], read_committed=False)[move.target]
    assert_all_listed({move.target: ends}, {move.target: move.target_partitions})
    expected, found, router = Sequences(), Sequences(), Router(move)
    for message in read_ranges(connection, move.source, in_flight):
        key, partition = message.key(), message.partition() or 0
        target, value = router.targets([key], partition)[0], router.values([message.value()], partition)[0]
        expected.add(target, key, value, message.timestamp()[1], message.headers())
    ranges = {p: (begins[p], end) for p, end in ends.items()}
    for message in read_ranges(connection, move.target, ranges, committed=move.is_in_place):
        target = message.partition() or 0
        found.add(target, message.key(), message.value(), message.timestamp()[1], message.headers())
    wrong = differences(expected, found)
    if wrong:
        raise UnsafeState(
            f"records in flight from {move.source} to {move.target}",
            found="; ".join(wrong),
            expected=f"the same {expected.records} records per key and in order",
            remedy="Another process has written to it since the application was stopped: find out which."
            if move.is_in_place
            else "Blue is started again; the next attempt empties the topic and moves them again.",
        )
    return expected.records
