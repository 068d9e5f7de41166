"""Growing an application's own topics while it is stopped: the steps beside those of a next generation.

1. ``stop``: hold the producers of paused inputs, drain, stop, prove it gone, capture what it left; promote. From
   here on only forward: a topic that has grown can't shrink.
2. ``expand`` per stage, the most downstream first, grows its topics; one ``move`` job copies what moves and leaves
   tombstones where it was, and writes the records in flight again, in the same order of stages.
3. ``start``: grow the inputs, set the group's offsets, start, release the producers.
"""

from __future__ import annotations

from kafka_rescale.core.application import Application
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.journal import Journal, Phase
from kafka_rescale.core.start_offsets import carried_starts, input_starts
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.copy_reset import fence
from kafka_rescale.kafka.transactions import wait_until_complete
from kafka_rescale.operations.cutover import Cutover, promoted
from kafka_rescale.operations.growing import assert_may_grow, assert_untouched
from kafka_rescale.operations.rescale import Rescale


def stop(application: Application, connection: KafkaConnection, *, owner: str) -> dict[str, float]:
    """Stop the application for its growth, or go on with a stop that was interrupted.

    :param owner: the run that holds the lease.
    :returns: seconds per part of the downtime so far.
    :raises RescaleError: what went wrong; the application runs again, if it was this that had stopped it.
    """
    promoted(application, connection, owner=owner, in_place=True)
    return dict(Rescale.open(application, connection, owner).journal().timings)


def start(application: Application, connection: KafkaConnection, *, owner: str) -> dict[str, float]:
    """Start the application that has grown; may be killed at any instruction and called again.

    :param owner: the run that holds the lease.
    :returns: seconds per part of the downtime.
    :raises UnsafeState: something has not been moved, or the application has run meanwhile.
    """
    rescale = Rescale.open(application, connection, owner)
    cutover = Cutover(rescale)
    cutover.assert_mode(in_place=True)
    journal = rescale.journal()
    assert_may_grow(rescale, journal)
    if not journal.green_ends:
        _settle(rescale, journal)
    return cutover.after_promotion()


def _settle(rescale: Rescale, journal: Journal) -> None:
    """Note where everything ends and where the application is to start: once, before it can write again."""
    plan, admin = journal.plan, rescale.admin
    assert journal.captured is not None
    assert_untouched(rescale, journal)
    # A worker of a killed attempt may still be alive: what it has not committed by now is never to be seen.
    fence(rescale.connection, plan, plan.moves)
    _assert_moved(rescale, journal)
    targets = [m.target for m in plan.moves]
    wait_until_complete(admin, targets)
    starts = input_starts(plan.inputs, journal.captured.committed)
    carried = carried_starts(plan.repartitions, journal.captured)
    rescale.advance(Phase.PROMOTED, green_ends=admin.end_offsets(targets), green_start={**starts, **carried})


def _assert_moved(rescale: Rescale, journal: Journal) -> None:
    assert journal.captured is not None
    positions, ends = rescale.admin.committed(journal.plan.copy_group), journal.captured.ends
    left = [
        f"{move.source}-{p}"
        for stage in journal.plan.stages
        for move in stage.growing
        for p, end in ends[move.source].items()
        if positions.get(move.source, {}).get(p, -1) < end
    ]
    if left:
        raise UnsafeState(
            f"expansion of {journal.plan.application}",
            found=f"records that have not been moved, in {', '.join(left)}",
            expected="every partition moved to its end",
            remedy="Clear the move task.",
        )
