"""Where a running copy is, and what that says about both logs, without stopping it.

Watermarks, as Netflix's DBLog reads them: positions before and after ends. Records and positions are committed in
one transaction. So once all transactions that had written below some ends of green are over, those ends and the
positions around them can be related, whatever the copy does meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Consumer

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms, poll_until
from kafka_rescale.kafka.copy.marks import Mark, Position, read_positions
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.reading.committed import closing_consumer

DECIDED_SECONDS = 120.0
"""A transaction of a killed writer is aborted after a minute."""


def read_fences(connection: KafkaConnection, plan: Plan) -> Fences:
    """Read positions, ends of green, positions, ends of green and positions, in this order.

    A position can be read only when no transaction on it is pending. A transaction's markers may reach green after
    that. So an end of green is the end of everything written, whether decided or not. This waits until all of it
    is decided.

    What blue has behind the last positions has no copy below these ends. So it need not be read, however much of
    it there is: while the copy pauses or catches up, it may be hours of records.

    :raises Outage: a copy has not begun or is being begun anew, or a transaction stays open.
    """
    admin, moves = ClusterAdmin(connection), plan.changelogs
    targets = [m.target for m in moves]
    topics = admin.existing_topics(targets)
    green_begins = admin.begin_offsets(targets)
    with closing_consumer(connection, plan.copy_group) as consumer:
        begun = _positions(consumer, moves)
        green_begun = _decided_ends(admin, targets)
        as_of_ms = now_ms()
        fence = _positions(consumer, moves)
        green_ends = _decided_ends(admin, targets)
        copied = _positions(consumer, moves)
    expiring = {topic for topic, of in topics.items() if "delete" in of.cleanup_policy}
    return Fences(
        begun=_offsets(begun),
        green_begun=green_begun,
        fence=_offsets(fence),
        green_ends=green_ends,
        green_begins=green_begins,
        green_topics={topic: of.topic_id for topic, of in topics.items()},
        green_compacted=tuple(topic for topic in sorted(topics) if topic not in expiring),
        green_restarts={
            m.target: max(p.mark.restarted_ms for p in begun[m.source].values())
            for m in moves
            if m.target in expiring
        },
        blue_ends=_offsets(copied),
        as_of_ms=as_of_ms,
        copied_as_of_ms={topic: min(p.mark.as_of_ms for p in of.values()) for topic, of in begun.items()},
    )


def last_fences(connection: KafkaConnection, plan: Plan, ends: PartitionOffsets, before: Fences) -> Fences:
    """Return the fences of a copy that has ended at the ends of a stopped blue.

    What says which topics of green these are, and whether they still have everything, may be a little old, because
    to ask for it for thousands of partitions takes long, and blue is stopped. If somebody has created a topic anew
    or deleted records since, the promotion finds it by what it asks for itself.

    :param ends: blue's ends, captured when it was proven gone. Everything below them is in green.
    :param before: fences of the same copies.
    """
    positions, as_of_ms = {m.source: ends[m.source] for m in plan.changelogs}, now_ms()
    green_ends = _ends_of_ended(ClusterAdmin(connection), [m.target for m in plan.changelogs])
    return before.model_copy(
        update={
            "begun": positions,
            "green_begun": green_ends,
            "fence": positions,
            "green_ends": green_ends,
            "blue_ends": positions,
            "as_of_ms": as_of_ms,
            "copied_as_of_ms": dict.fromkeys(positions, as_of_ms),
        }
    )


def green_now(admin: ClusterAdmin, plan: Plan) -> tuple[dict[str, str], PartitionOffsets, dict[str, int]]:
    """Return what ``Fences.lost`` asks for: ids and log starts of green's topics that exist, and restarts."""
    present = topic_ids(admin, [m.target for m in plan.changelogs])
    return present, admin.begin_offsets(present), restarts_now(admin, plan)


def restarts_now(admin: ClusterAdmin, plan: Plan) -> dict[str, int]:
    """Return when each copy was last begun anew, in ms since the epoch, by green's topics; 0 if it never was.

    A topic is left out if its copy has no position.

    :raises ClusterOutage: the coordinator doesn't answer.
    """
    # Imported here for the same reason as in ``kafka.admin.offsets``.
    from kafka_rescale.kafka.admin.group_metadata import offsets_and_metadata

    # One position of each copy tells: a restart marks all partitions before it empties the target.
    found = offsets_and_metadata(admin.connection, plan.copy_group, [(m.source, 0) for m in plan.changelogs])
    # confluent-kafka ends the metadata that it commits with a byte 0.
    marks = {source: Mark.from_metadata(known.metadata.rstrip("\0")) for (source, _), known in found.items()}
    return {
        m.target: mark.restarted_ms for m in plan.changelogs if (mark := marks.get(m.source, Mark())) != Mark()
    }


def topic_ids(admin: ClusterAdmin, topics: Iterable[str]) -> dict[str, str]:
    """Return the ids of those topics that exist.

    A broker that has just started may not know a topic. Only a controller is believed that a topic is absent.
    """
    wanted = set(topics)
    found = admin.topic_ids(wanted)
    hidden = [topic for topic in sorted(wanted - found.keys()) if not admin.is_absent(topic)]
    return {**found, **{topic: of.topic_id for topic, of in admin.existing_topics(hidden).items()}}


def _positions(consumer: Consumer, moves: Sequence[Move]) -> dict[str, dict[int, Position]]:
    found = read_positions(consumer, [unit.source for unit in units_of(moves)])
    for unit in units_of(moves):
        position = found.get(unit.source)
        if position is None or position.mark.state:
            raise Outage(
                f"copy of {unit}",
                found="no position" if position is None else f"a target that is {position.mark.state}",
                expected="a copy that goes on",
                remedy="Look at the log of the catch_up task; then run again.",
            )
    return {m.source: {p: found[m.source, p] for p in range(m.source_partitions)} for m in moves}


def _offsets(positions: dict[str, dict[int, Position]]) -> PartitionOffsets:
    return {topic: {p: position.offset for p, position in of.items()} for topic, of in positions.items()}


def _ends_of_ended(admin: ClusterAdmin, topics: Sequence[str]) -> PartitionOffsets:
    """Return the ends of what was written by a copy that has ended, so that no transaction should be open.

    Both kinds of ends are asked for at the same time: a committed end says that everything below it is decided,
    whenever that was.
    """
    with ThreadPoolExecutor(1) as beside:
        committed = beside.submit(admin.end_offsets, topics)
        written = admin.end_offsets(topics, read_committed=False)
    return written if _reach(committed.result(), written) else _decided_ends(admin, topics)


def _reach(committed: PartitionOffsets, written: PartitionOffsets) -> bool:
    return all(committed.get(t, {}).get(p, -1) >= end for t, of in written.items() for p, end in of.items())


def _decided_ends(admin: ClusterAdmin, topics: Sequence[str]) -> PartitionOffsets:
    """Return the ends of what was written, when every transaction with a record below them is over."""
    written = admin.end_offsets(topics, read_committed=False)
    poll_until(
        lambda: _reach(admin.end_offsets(topics), written),
        seconds=DECIDED_SECONDS,
        otherwise=lambda: Outage(
            f"topics {', '.join(topics)}",
            found=f"a transaction that has been open for {DECIDED_SECONDS:.0f} s",
            expected="transactions that end",
            remedy="Run again; a copy that was killed leaves a transaction until its timeout.",
        ),
    )
    return written
