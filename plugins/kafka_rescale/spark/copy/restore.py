"""The bulk copy of one stage's changelogs, up to the ends that they have when it starts."""

from __future__ import annotations

from kafka_rescale.kafka.copy.units import buckets_of
from kafka_rescale.spark.copy.stage import StageCopy
from kafka_rescale.spark.jobs.job import Job, say


def restore(job: Job) -> None:
    """Copy every changelog of a stage: one task per producer, as many at a time as Spark has cores.

    A copy that has not begun begins with the newest snapshot that can be used, and reads only the log behind it.
    If no snapshot can be used, it reads the whole log, and the result says why.

    :raises RescaleError: a task has failed; the next attempt goes on from the committed positions.
    """
    stage = StageCopy.begin(job)
    if stage is None:
        return
    progress, units, task = stage.progress, stage.units, stage.task(job.arguments.snapshots)
    job.report(progress, lambda _: "running", detail=stage.deadline.told)
    begun = stage.run(job, task, buckets_of(units))
    refused = [line for each in begun for line in each.refused]
    for line in refused:
        say(line)
    snapshot, seeded = progress.read(), sum(each.rows for each in begun)
    detail = f"{snapshot.records - seeded:,} records read"
    if seeded:
        detail += f", {seeded:,} rows of snapshots"
    if refused:
        detail += f"; {len(refused)} snapshots not used, the first: {refused[0]}"
    say(f"{job.key} done: {snapshot}; {detail}")
    job.put("done", snapshot, detail, seeded=seeded)
