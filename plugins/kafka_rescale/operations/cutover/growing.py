"""Between stop and start of an application that grows in place: only the expansion may work on its topics."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.instances import green
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.copy.rehearsal import record_limits, rehearse_unit
from kafka_rescale.kafka.copy.units import CopyUnit, units_of
from kafka_rescale.operations.expansion.rescale import Rescale

LOOKING_THREADS = 8
WRITTEN_WITHIN_MS = 600_000


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

    The switch may be days later: records have grown older, and configs may have been changed.

    :raises UnsafeState: a record could not be moved any more.
    """
    result = rescale.control.read().results.get("rehearse")
    limits = record_limits(rescale.admin, journal.plan.growing, WRITTEN_WITHIN_MS)
    for known in result.partitions if result else ():
        if (seen := known.extremes) is not None and (limit := limits.get(known.topic)) is not None:
            place = f"topic {known.topic} partition {known.partition}, which was rehearsed"
            for timestamp_ms in (seen.oldest_ms, seen.newest_ms):
                limit.check(place, timestamp_ms, seen.bytes)


def assert_movable(rescale: Rescale, journal: Journal) -> None:
    """Check the records that the rehearsal has not seen: those written since, and those in flight.

    :raises UnsafeState: a record can't be moved. The application can still be started as it was.
    """
    assert journal.captured is not None
    result = rescale.control.read().results.get("rehearse")
    seen = {(p.topic, p.partition): p.position for p in result.partitions} if result else {}
    carried = {(t, p): start for t, of in journal.captured.in_flight_starts.items() for p, start in of.items()}
    starts, ends = {**seen, **carried}, journal.captured.ends
    limits = record_limits(rescale.admin, journal.plan.growing, WRITTEN_WITHIN_MS)

    def look(unit: CopyUnit) -> None:
        topic, partition = unit.source
        start, end = starts.get(unit.source, 0), ends[topic][partition]
        rehearse_unit(rescale.connection, unit, start, end, limits[unit.move.target])

    # The application is down meanwhile, and most of the time goes to waiting for brokers: so wait in parallel.
    with ThreadPoolExecutor(max_workers=LOOKING_THREADS) as pool:
        list(pool.map(look, units_of(journal.plan.growing)))


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
