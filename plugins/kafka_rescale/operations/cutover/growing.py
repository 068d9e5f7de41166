"""Between stop and start of an application that grows in place: only the expansion may work on its topics."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.copy.rehearsal import record_limits, rehearse_unit
from kafka_rescale.kafka.copy.units import CopyUnit, units_of
from kafka_rescale.operations.expansion.rescale import Rescale, green

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

    :raises UnsafeState: something has started it meanwhile.
    """
    assert journal.captured is not None
    committed = rescale.admin.committed(journal.plan.green)
    moved = [
        f"{topic}-{p}"
        for topic, offsets in {**journal.captured.committed, **journal.captured.in_flight_starts}.items()
        for p, offset in offsets.items()
        if committed.get(topic, {}).get(p, -1) > offset
    ]
    if moved:
        raise started_elsewhere(journal.plan, f"offsets of {', '.join(moved)} committed since it was stopped")


def started_elsewhere(plan: Plan, found: str) -> UnsafeState:
    """Return the error about an application that was started from outside this expansion.

    :param found: the traces that the start has left.
    """
    return UnsafeState(
        f"application {plan.green}",
        found=found,
        expected="no start before the cutover starts it",
        remedy="Stop it. What it has processed since may be processed again: look at its output, set its offsets "
        "back, and clear this task.",
    )
