"""The positions of a bridge: made before the promotion, set to blue's stop offsets, never lost unnoticed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.added_partitions import Added
from kafka_rescale.core.control.bridge import Bridge, Verdict, unfinished, verdict
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.control.progress import NO_POSITION, PartitionProgress
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import PreflightRefused, UnsafeState
from kafka_rescale.core.expansion.bridge_progress import with_progress
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms, wait_until
from kafka_rescale.kafka.copy.bucket import Bucket
from kafka_rescale.kafka.copy.fences import topic_ids
from kafka_rescale.kafka.copy.marks import EMPTIED, Mark, Position, read_positions
from kafka_rescale.kafka.copy.reset import FENCING_THREADS, fence
from kafka_rescale.kafka.copy.units import buckets_of, units_of
from kafka_rescale.kafka.reading.committed import AT_ONCE, closing_consumer

OLD_PARTITIONS_SECONDS = 24 * 3600.0


def verdict_now(connection: KafkaConnection, state: ControlState) -> Verdict:
    """Return whether a bridge of this application has records to copy."""
    admin = ClusterAdmin(connection)
    ids, last = ids_of_bridged(admin, state.bridging), ends_of_bridged(admin, state.bridging)
    known = state.bridge_of(state.bridging)
    return verdict(state.bridging, known, last=last, topics=admin.list_topics(), ids=ids)


def ends_of_bridged(admin: ClusterAdmin, journal: Journal | None) -> PartitionOffsets:
    """Return the ends of the old topics of an expansion's bridges, open transactions included.

    Only a topic that was deleted is left out. If a broker that has just started hid a topic, its records would
    seem to be carried on.

    :raises ClusterOutage: brokers don't know a topic that exists.
    """
    sources = {m.source for m in journal.plan.bridges} if journal else set()
    return admin.end_offsets(sources - admin.absent_of(sources), read_committed=False)


def ids_of_bridged(admin: ClusterAdmin, journal: Journal | None) -> dict[str, str]:
    """Return the ids of the old topics of an expansion's bridges, without topics that were deleted.

    Ask for them before the ends. If a topic is made anew in between, the ends are those of a log with another id,
    and the next look finds that.

    :raises ClusterOutage: brokers don't know a topic that exists.
    """
    return topic_ids(admin, {m.source for m in journal.plan.bridges} if journal else ())


def with_live_bridge(connection: KafkaConnection, control: ControlState) -> ControlState:
    """Return the control state of an application, with the present progress of its bridge."""
    return with_progress(control, live_progress(connection, control), now_ms())


def live_progress(connection: KafkaConnection, control: ControlState) -> list[PartitionProgress]:
    """Return how far the bridges of a promoted expansion are; empty if there is nothing to copy.

    A person who moves a producer relies on this. It compares positions with the ends, open transactions included,
    of every partition that the old topics have now. A partition that no bridge has begun to copy has no position.
    """
    journal = control.bridging
    if journal is None or not journal.is_promoted or not journal.plan.bridges:
        return []
    admin = ClusterAdmin(connection)
    ids, ends = ids_of_bridged(admin, journal), ends_of_bridged(admin, journal)
    sources = [(topic, partition) for topic, of in ends.items() for partition in of]
    with closing_consumer(connection, journal.plan.bridge_group, **AT_ONCE) as consumer:
        found = read_positions(consumer, sources)
    known = Bridge.of(journal.plan, control.bridge_of(journal), ids)
    found = _of_present_logs(found, known.made_anew(ids))
    # The group of a bridge that has ended may be gone; its proof says how far it had come.
    positions = {(t, p): known.proven.get(t, {}).get(p, NO_POSITION) for t, p in sources}
    positions |= {source: position.offset for source, position in found.items() if not position.mark.state}
    # A bridge begins where blue has stopped; a partition that the topic has got since, at its beginning.
    begins = journal.captured.committed if journal.captured else {}
    return [
        PartitionProgress(
            topic=t, partition=p, position=positions[t, p], end=ends[t][p], begin=begins.get(t, {}).get(p, 0)
        )
        for t, p in sources
    ]


def assert_ended(connection: KafkaConnection, state: ControlState, plan: Plan) -> None:
    """Refuse to begin another expansion while bridges of the last one have records left to copy.

    Preflight has checked the same, but maybe hours ago: the run may have waited for an approval in between.

    :param plan: plan of the expansion that is to begin.
    :raises PreflightRefused: records have come into an old topic since, or its bridge has not ended.
    """
    journal = state.bridging
    if journal is not None and journal.phase is Phase.COMPLETE and journal.plan.fingerprint != plan.fingerprint:
        _assert_all_carried_on(connection, state, journal)


def assert_none_late(connection: KafkaConnection, state: ControlState) -> None:
    """Refuse to pause while an old topic of the last promotion has records that no bridge has copied.

    They have come since this expansion began. After its promotion, no bridge would copy them any more.

    :raises PreflightRefused: there are such records.
    """
    if (journal := state.replaced_promotion) is not None:
        _assert_all_carried_on(connection, state, journal)


def _assert_all_carried_on(connection: KafkaConnection, state: ControlState, journal: Journal) -> None:
    admin = ClusterAdmin(connection)
    ids, last = ids_of_bridged(admin, journal), ends_of_bridged(admin, journal)
    if found := list(unfinished(journal, state.bridge_of(journal), last=last, ids=ids)):
        raise PreflightRefused(found)


def prepare(
    connection: KafkaConnection,
    plan: Plan,
    known: Bridge,
    ended: Bridge | None = None,
    *,
    gone: Collection[str] = (),
    anew: Collection[str] = (),
) -> None:
    """Give every old partition without a position one that waits for the fence, or the proven one.

    :param known: tells for which partitions a missing position means that it was lost.
    :param ended: the record as it was found. If that bridge had ended, its proof replaces lost positions.
    :param gone: old topics that were deleted; nothing of them can be carried on.
    :param anew: old topics that were made anew; see ``Bridge.made_anew``.
    :raises UnsafeState: a position has been lost.
    :raises Fenced: a newer attempt has taken over.
    """
    with closing_consumer(connection, plan.bridge_group) as consumer:
        moves = [move for move in known.widened(plan.bridges) if move.source not in gone]
        units = units_of(moves)
        fence(connection, plan, moves)
        found = _of_present_logs(read_positions(consumer, [unit.source for unit in units]), anew)
        missing = [unit for unit in units if unit.source not in found]
        proven = _proven(ended) if ended is not None else {}
        if lost := [at for at in known.lost(plan.bridges, {*found, *proven}) if at[0] not in gone]:
            raise UnsafeState(
                f"group {plan.bridge_group!r}",
                found=f"no position of {', '.join(f'{topic}-{p}' for topic, p in lost)}",
                expected="the positions of a bridge that has begun",
                remedy="The group or the old topic was deleted, or the bridge stood still for longer than "
                "offsets.retention.minutes. Find in the new topic what was carried on last, and commit the "
                "offsets after it to this group; if the old topic was made anew, commit its log starts.",
            )
        waiting = Position(0, Mark(state=EMPTIED))
        divided = buckets_of(missing)
        with ThreadPoolExecutor(max_workers=max(1, min(FENCING_THREADS, len(divided)))) as pool:
            # Fence the transactional ids first: an older attempt can't commit in between.
            buckets = list(pool.map(lambda of: Bucket(connection, of, plan.green), divided))
            taken = read_positions(consumer, [unit.source for unit in missing])
            left = [(b, {s: proven.get(s, waiting) for s in b.writers if s not in taken}) for b in buckets]
            list(pool.map(lambda each: each[0].commit_at(consumer, each[1]), [each for each in left if each[1]]))


def is_by_hand(position: Position) -> bool:
    """Return whether a person has committed a position: what a bridge commits has a mark."""
    return position.mark == Mark()


def _of_present_logs(
    found: Mapping[TopicPartition, Position], anew: Collection[str]
) -> dict[TopicPartition, Position]:
    """Return positions without those that a bridge has committed for the deleted log of a topic.

    Brokers delete these together with the topic. A coordinator that was away at that moment may have kept them.

    :param anew: topics that were made anew.
    """
    return {source: at for source, at in found.items() if source[0] not in anew or is_by_hand(at)}


def _proven(ended: Bridge) -> dict[TopicPartition, Position]:
    mark = Mark(as_of_ms=ended.ended_at_ms)
    return {(topic, p): Position(end, mark) for topic, of in ended.proven.items() for p, end in of.items()}


def fence_of(journal: Journal, added: Iterable[Added]) -> dict[TopicPartition, int]:
    """Return the first offsets to copy: where blue stopped, and 0 for partitions that blue has never known.

    :param journal: journal of an expansion that has been promoted.
    """
    assert journal.captured is not None
    committed = journal.captured.committed
    fence = {u.source: committed[u.move.source][u.partition] for u in units_of(journal.plan.bridges)}
    return fence | {(a.topic, p): 0 for a in added for p in range(len(a.ends), a.count)}


def wait_for_positions(connection: KafkaConnection, plan: Plan, ends: Mapping[TopicPartition, int]) -> None:
    """Wait until old partitions are copied up to some ends, by this worker or others.

    :param ends: exclusive.
    :raises Outage: another worker does not get there in time.
    """
    with closing_consumer(connection, plan.bridge_group) as consumer:

        def done() -> bool:
            found = read_positions(consumer, ends)
            return all(
                s in found and not found[s].mark.state and found[s].offset >= end for s, end in ends.items()
            )

        wait_until(
            done,
            seconds=OLD_PARTITIONS_SECONDS,
            what="the backlog of every old partition to be carried on",
            remedy="Look at the other tasks of the bridge; run it again.",
        )
