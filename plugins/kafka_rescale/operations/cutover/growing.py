"""Between stop and start of an application that grows in place: only the expansion may work on its topics."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from threading import Event

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.core.formats.record_limits import RecordLimits
from kafka_rescale.core.plan.instances import green
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.waiting import within
from kafka_rescale.kafka.copy.rehearsal import record_limits, rehearse_unit
from kafka_rescale.kafka.copy.units import CopyUnit, units_of
from kafka_rescale.operations.expansion.rescale import Rescale

LOOKING_THREADS = 8
WRITTEN_WITHIN_MS = 600_000
AHEAD_SECONDS = 600.0
"""How long the records before the pause are looked at, or as long as a pause may last if that is longer."""
NEAR_SECONDS = 5.0
"""What is written while a look takes less than this is left for the pause."""


def assert_still_stopped(rescale: Rescale, journal: Journal) -> None:
    """Check that the application has not been started since it was stopped for its growth.

    :raises UnsafeState: it runs. It would die of the growth, or it has read records that are being moved.
    """
    if rescale.is_alive(green(journal.plan)):
        raise UnsafeState(
            f"application {journal.plan.green}",
            found="a running instance, while its topics are being re-partitioned",
            expected="no running instance until the cutover starts it",
            remedy="Stop the application, and whatever has started it; then clear this task.",
        )


def assert_may_grow(admin: ClusterAdmin, plan: Plan) -> None:
    """Ask the brokers whether they would grow the topics that have to grow after the promotion.

    :raises RescaleError: a limit, a policy or a missing permission is in the way.
    """
    own = {m.source: m.target_partitions for m in plan.growing if m.is_in_place}
    admin.validate_growth({**own, **{i.topic: i.target for i in plan.inputs if i.grows}})


def grow_own_topics(admin: ClusterAdmin, plan: Plan) -> None:
    """Grow the internal topics to the plan's counts, stage by stage; idempotent."""
    for stage in plan.stages:
        admin.grow_topics({m.source: m.target_partitions for m in stage.moves if m.is_in_place})


def assert_rehearsal_holds(rescale: Rescale, journal: Journal) -> None:
    """Check that the brokers would still accept what was rehearsed, before the application is stopped.

    The switch may be days later: records have grown older, and configs may have been changed. A record that seems
    to be in the way may be gone meanwhile, so its partition is read again.

    :raises UnsafeState: a record could not be moved any more.
    """
    limits = record_limits(rescale.admin, journal.plan.growing, WRITTEN_WITHIN_MS)
    units = {unit.source: unit for unit in units_of(journal.plan.growing)}
    for known in _rehearsed(rescale):
        unit, limit = units.get((known.topic, known.partition)), limits.get(known.topic)
        if unit is not None and limit is not None and not _fits(known, limit):
            rehearse_unit(rescale.connection, unit, 0, known.position, limit)


def _fits(known: PartitionProgress, limit: RecordLimits) -> bool:
    """Return whether the extremes of a rehearsed partition are within limits, as far as they are known."""
    if (seen := known.extremes) is None:
        return True
    try:
        for timestamp_ms in (seen.oldest_ms, seen.newest_ms):
            limit.check(known.topic, timestamp_ms, seen.bytes)
    except UnsafeState:
        return False
    return True


def look_ahead(rescale: Rescale, journal: Journal, seen: dict[TopicPartition, int]) -> None:
    """Check, while the application works, the state that was written since the rehearsal.

    The switch may be waited for for days, and nothing reads on meanwhile. Without this, all that was written would
    be read within the pause.

    :param seen: raised to the next offset that is left to check, by partition.
    :raises UnsafeState: a record can't be moved. Nothing has been changed yet.
    :raises Outage: it takes too long.
    """
    moves = [move for move in journal.plan.growing if move.kind is MoveKind.CHANGELOG]
    for position in _rehearsed(rescale):
        seen.setdefault((position.topic, position.partition), position.position)
    pause_seconds = rescale.application.max_pause_seconds
    longest = max(AHEAD_SECONDS, pause_seconds)
    left = within(longest)

    def seconds_left() -> float:
        if (seconds := left()) <= 0:
            raise _too_many(journal.plan, longest)
        return seconds

    def look() -> float:
        began, ends = time.monotonic(), rescale.admin.end_offsets([move.source for move in moves])
        # What is found here is written only behind the pause.
        within_ms = WRITTEN_WITHIN_MS + int(1000 * (longest + pause_seconds))
        _look(rescale, moves, seen, ends, within_ms, seconds_left)
        return time.monotonic() - began

    before, took = math.inf, look()
    # The rest is what was written meanwhile. With many partitions, a look takes its time however little that is.
    while took > NEAR_SECONDS and took <= before / 2:
        before, took = took, look()
    if took >= pause_seconds:
        raise _too_many(journal.plan, pause_seconds)


def _too_many(plan: Plan, seconds: float) -> Outage:
    return Outage(
        f"state of {plan.application}",
        found=f"too many unrehearsed records to check within {seconds:.0f} s",
        expected="at most what the application writes within a few seconds, before it is stopped",
        remedy="The application was not stopped. Trigger the expansion again, see that `rehearse` runs, and let "
        "the switch follow soon.",
    )


def assert_movable(
    rescale: Rescale, journal: Journal, seen: Mapping[TopicPartition, int], seconds_left: Callable[[], float]
) -> None:
    """Check the records that nobody has looked at yet: those written at last, and those in flight.

    :param seen: next offset to check, by partition, as far as ``look_ahead`` of this process got.
    :param seconds_left: how long the pause may still last; it raises when the time is over.
    :raises UnsafeState: a record can't be moved. The application can still be started as it was.
    """
    assert journal.captured is not None
    rehearsed = {(p.topic, p.partition): p.position for p in _rehearsed(rescale)}
    carried = {(t, p): start for t, of in journal.captured.in_flight_starts.items() for p, start in of.items()}
    starts = {**rehearsed, **seen, **carried}
    _look(rescale, journal.plan.growing, starts, journal.captured.ends, WRITTEN_WITHIN_MS, seconds_left)


def _rehearsed(rescale: Rescale) -> Sequence[PartitionProgress]:
    result = rescale.control.read().results.get("rehearse")
    return result.partitions if result else ()


def _look(
    rescale: Rescale,
    moves: Sequence[Move],
    starts: dict[TopicPartition, int],
    ends: PartitionOffsets,
    within_ms: int,
    seconds_left: Callable[[], float],
) -> None:
    """Check records up to some ends, many partitions at a time: most of the time goes to waiting for brokers.

    When the time is over, nobody waits for a thread, because it may hang in a request.

    :param starts: by partition; each is raised to its end once that has been reached.
    """
    limits, is_over = record_limits(rescale.admin, moves, within_ms), Event()

    def go_on() -> None:
        if is_over.is_set():
            raise CancelledError

    def look(unit: CopyUnit) -> CopyUnit:
        start, end = starts.get(unit.source, 0), unseen[unit]
        rehearse_unit(rescale.connection, unit, start, end, limits[unit.move.target], go_on)
        return unit

    reach = {unit: ends[unit.move.source][unit.partition] for unit in units_of(moves)}
    unseen = {unit: end for unit, end in reach.items() if starts.get(unit.source, 0) < end}
    pool = ThreadPoolExecutor(max_workers=LOOKING_THREADS)
    try:
        left = {pool.submit(look, unit) for unit in unseen}
        while left:
            done, left = wait(left, timeout=seconds_left(), return_when=FIRST_EXCEPTION)
            for unit in (each.result() for each in done):
                starts[unit.source] = unseen[unit]
    finally:
        is_over.set()
        pool.shutdown(wait=False, cancel_futures=True)


def assert_untouched(rescale: Rescale, journal: Journal) -> None:
    """Check that the application's committed offsets are those that it was stopped with.

    :raises UnsafeState: something has started it meanwhile. The error names the offsets to set, and what it has
        written, as far as that can be told.
    """
    assert journal.captured is not None
    if moved := journal.captured.passed(rescale.admin.committed(journal.plan.green)):
        raise started_elsewhere(
            journal.plan,
            f"offsets of {', '.join(moved)} committed since it was stopped",
            "The cutover goes on from where it was stopped, so what it has processed since is processed again: "
            f"look at its output. {_written(rescale.admin, journal)} Set back its offsets in group "
            f"{journal.plan.green} (`kafka-consumer-groups.sh --reset-offsets --topic TOPIC:PARTITION --to-offset "
            f"OFFSET`): {', '.join(f'{partition} to {offset}' for partition, offset in moved.items())}",
        )


def _written(admin: ClusterAdmin, journal: Journal) -> str:
    """Return what the application has written to its own topics since it was stopped, in a sentence.

    Behind the captured ends of a topic that has grown are also the records that were moved.
    """
    assert journal.captured is not None
    captured, ends = journal.captured.ends, admin.end_offsets(journal.captured.ends)
    told = {topic: of for topic, of in captured.items() if ends[topic].keys() == of.keys()}
    beyond = [f"{t}-{p} from {end} on" for t, of in told.items() for p, end in of.items() if ends[t][p] > end]
    if beyond:
        return (
            f"It has written records too: {', '.join(beyond)}. Where they are state, it counts what is processed "
            "again a second time, for all keys that keep their partition."
        )
    if told.keys() == captured.keys():
        return "It has written neither state nor other records of its own."
    return "Whether it has written state can't be told any more, because records were moved since."


def started_elsewhere(plan: Plan, found: str, remedy: str) -> UnsafeState:
    """Return the error about an application that was started from outside this expansion.

    :param found: the traces that the start has left.
    :param remedy: what to do behind its stop, without a full stop.
    """
    return UnsafeState(
        f"application {plan.green}",
        found=found,
        expected="no start before the cutover starts it",
        remedy=f"Stop it. {remedy}. Then clear this task.",
    )
