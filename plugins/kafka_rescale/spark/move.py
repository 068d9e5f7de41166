"""In place: what moves of one stage goes to its new partitions, with a tombstone where it was."""

from __future__ import annotations

from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.journal import Captured, Journal, Phase
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.copy_progress import CopyProgress
from kafka_rescale.kafka.copy_units import units_of
from kafka_rescale.kafka.in_flight import prove, starts_and_ends
from kafka_rescale.kafka.transactions import wait_until_complete
from kafka_rescale.kafka.waiting import now_ms
from kafka_rescale.spark.copy_tasks import CopyToEnds
from kafka_rescale.spark.job import Job, say


def move(job: Job) -> None:
    """Move keys of a stage's stores and its records in flight; one task per partition that the application knew.

    Reads up to where the application had written when it was stopped, and never what this itself appends.

    :raises UnsafeState: the application has not been stopped for it, or runs.
    """
    journal = job.journal()
    moves = journal.plan.stage(job.arguments.stage or 0).growing
    captured = _captured(job, journal)
    job.put("running")
    if not moves or journal.phase is not Phase.PROMOTED or journal.green_ends:
        say(f"{job.key}: nothing to move in phase {journal.phase}")
        job.put("done")
        return
    units = units_of(moves)
    ends = {u.source: captured.ends[u.source[0]][u.source[1]] for u in units}
    starts, _ = starts_and_ends(captured, [u.source for u in units if not u.is_changelog])
    task = CopyToEnds(job.connection, journal.plan, ends, now_ms(), starts, exactly=True)
    progress = CopyProgress(job.connection, journal.plan, moves, fixed_ends=ends)
    job.report(progress, lambda _: "running")
    lists = job.spark().sparkContext.parallelize([[unit] for unit in units], len(units))
    job.run_reported(lambda: lists.mapPartitions(task).collect(), progress)
    wait_until_complete(ClusterAdmin(job.connection), [m.target for m in moves])
    for carried in (m for m in moves if m.source in captured.in_flight):
        count = prove(job.connection, carried, captured.in_flight[carried.source])
        say(f"{job.key}: {count:,} records in flight are in {carried.target}, per key and in order")
    snapshot = progress.read()
    say(f"{job.key} done: {snapshot}")
    job.put("done", snapshot)


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
