"""The bulk copy of one stage's changelogs, up to the ends that they have when it starts."""

from __future__ import annotations

from kafka_rescale.core.journal import Phase
from kafka_rescale.kafka.copy_progress import CopyProgress
from kafka_rescale.kafka.copy_reset import restart_stale
from kafka_rescale.kafka.copy_settings import now_ms
from kafka_rescale.kafka.copy_units import units_of
from kafka_rescale.spark.copy_tasks import CopyToEnds
from kafka_rescale.spark.job import Job, say


def restore(job: Job) -> None:
    """Copy every changelog of a stage: one task per source partition, as many at a time as Spark has cores.

    :raises RescaleError: what stopped it; the next attempt goes on from the committed positions.
    """
    journal = job.journal()
    plan, moves = journal.plan, job.stage_of(journal.plan).changelogs
    job.put("running")
    if journal.phase not in {Phase.WARMING, Phase.ROLLED_BACK} or not moves:
        say(f"{job.key}: nothing to copy in phase {journal.phase}")
        job.put("done")
        return
    for line in restart_stale(job.connection, plan, moves, now_ms()):
        say(line)
    progress = CopyProgress(job.connection, plan, moves)
    units, asked_ms = units_of(moves), now_ms()
    task = CopyToEnds(job.connection, plan, progress.ends(), asked_ms)
    job.report(progress, lambda _: "running")
    context = job.spark().sparkContext
    lists = context.parallelize([[unit] for unit in units], len(units))
    job.run_reported(lambda: lists.mapPartitions(task).collect(), progress)
    snapshot = progress.read()
    say(f"{job.key} done: {snapshot}")
    job.put("done", snapshot)
