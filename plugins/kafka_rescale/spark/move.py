"""In place: what moves goes to its new partitions, with a tombstone where it was; stage by stage in one job.

The application is down meanwhile, and starting a driver costs more than most moves: there is one for all stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.journal import Captured, Journal, Phase
from kafka_rescale.core.plan import Move
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.copy_progress import CopyProgress, Snapshot
from kafka_rescale.kafka.copy_reset import fence
from kafka_rescale.kafka.copy_units import units_of
from kafka_rescale.kafka.in_flight import prove, starts_and_ends
from kafka_rescale.kafka.transactions import wait_until_complete
from kafka_rescale.kafka.waiting import now_ms
from kafka_rescale.spark.copy_tasks import CopyToEnds
from kafka_rescale.spark.job import Job, say

if TYPE_CHECKING:
    from pyspark import SparkContext


def move(job: Job) -> None:
    """Move keys of all stores and the records in flight, the most downstream stage first.

    Every stage leaves a result of its own, ``move/<stage>``. An attempt that follows a killed one finds the stages
    that are done by their positions, and goes on where it was.

    :raises UnsafeState: the application has not been stopped for it, or runs.
    """
    journal = job.journal()
    captured = _captured(job, journal)
    job.put("running")
    if journal.phase is not Phase.PROMOTED or journal.green_ends:
        say(f"{job.key}: nothing to move in phase {journal.phase}")
        job.put("done")
        return
    context = job.spark().sparkContext
    stages = [stage for stage in journal.plan.stages if stage.growing]
    moved = [_move(job.part(s.index), context, journal, captured, s.growing) for s in stages]
    job.put("done", Snapshot.of_all(moved))


def _move(
    job: Job, context: SparkContext, journal: Journal, captured: Captured, moves: Sequence[Move]
) -> Snapshot:
    """Move one stage; one task per partition that the application knew.

    Reads up to where the application had written when it was stopped, and never what this itself appends.
    """
    if job.key in job.control.read().results:
        # Of an attempt that was killed within a commit nobody tells the positions until it is fenced.
        fence(job.connection, journal.plan, moves)
    job.put("running")
    units = units_of(moves)
    ends = {u.source: captured.ends[u.source[0]][u.source[1]] for u in units}
    starts, _ = starts_and_ends(captured, [u.source for u in units if not u.is_changelog])
    task = CopyToEnds(job.connection, journal.plan, ends, now_ms(), starts, exactly=True)
    progress = CopyProgress(job.connection, journal.plan, moves, fixed_ends=ends)
    job.report(progress, lambda _: "running")
    lists = context.parallelize([[unit] for unit in units], len(units))
    job.run_reported(lambda: lists.mapPartitions(task).collect(), progress)
    wait_until_complete(ClusterAdmin(job.connection), [m.target for m in moves])
    for carried in (m for m in moves if m.source in captured.in_flight):
        count = prove(job.connection, carried, captured.in_flight[carried.source])
        say(f"{job.key}: {count:,} records in flight are in {carried.target}, per key and in order")
    snapshot = progress.read()
    say(f"{job.key} done: {snapshot}")
    job.put("done", snapshot)
    return snapshot


def _captured(job: Job, journal: Journal) -> Captured:
    plan = journal.plan
    if not plan.is_in_place or not journal.is_promoted or journal.captured is None:
        raise UnsafeState(
            f"expansion of {plan.application}",
            found=f"phase {journal.phase}, mode {'in_place' if plan.is_in_place else 'blue_green'}",
            expected="an expansion in place, of an application that has been stopped for it",
            remedy="Trigger the expansion again: its tasks come in an order.",
        )
    if journal.phase is Phase.PROMOTED and ClusterAdmin(job.connection).describe_group(plan.green).is_live:
        raise UnsafeState(
            f"group {plan.green}",
            found="members, while its topics are being re-partitioned",
            expected="a stopped application",
            remedy="Stop it, and whatever has started it; then run this again.",
        )
    return journal.captured
