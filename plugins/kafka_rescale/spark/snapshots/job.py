"""The snapshot of one day: every store of an application, by one Spark task per changelog partition.

It only reads Kafka, takes no lease, and can run beside an expansion. Days can be built in any order and at the
same time. An earlier day that exists saves reading, and changes nothing in the result.
"""

from __future__ import annotations

import time

from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.snapshots.request import SnapshotRequest
from kafka_rescale.core.snapshots.source import source_at
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.bridging import ids_of_bridged
from kafka_rescale.spark.jobs.job import Job, say
from kafka_rescale.spark.snapshots.build import SnapshotBuild
from kafka_rescale.spark.snapshots.refusals import not_over


def snapshot(job: Job) -> None:
    """Write the snapshot that a job was asked for; its result tells what was read and written.

    :raises InvalidInput: the day is not over.
    :raises Refused: a store's state as of the end of the day can't be told exactly any more.
    :raises Outage: the application has not processed all records of the day yet.
    """
    request = SnapshotRequest.model_validate_json(job.arguments.request)
    # Days of a backfill are built at the same time, so each day has a result of its own.
    job.key = f"snapshot/{request.date}"
    job.control.ensure()
    day, began = request.day, time.monotonic()
    if day.end_ms > now_ms():
        raise not_over(request)
    state = job.control.read()
    ids = ids_of_bridged(ClusterAdmin(job.connection), state.bridging)
    source = source_at(state, request.application, day, ids)
    say(f"{job.key}: reading generation {source.generation}")
    build = SnapshotBuild(job, request, source, state.generations)
    manifests, read = build.run(job.spark())
    expired = build.expire()
    rows = {m.store.name: m.rows for m in manifests}
    detail = f"generation {source.generation}; rows: {', '.join(f'{name} {n}' for name, n in rows.items())}"
    say(f"{job.key} done: {read} records read; {detail}")
    changes = {f"{Concern.RESULT}/snapshot/{gone}": None for gone in expired}
    job.finish(records=read, began=began, changes=changes, as_of_ms=day.end_ms, detail=detail)
