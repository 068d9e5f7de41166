"""The standbys and warm-ups of one client of a pipeline, one Spark partition each."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.request import KeepWarmRequest
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.processing.changelogs import known_state
from kafka_rescale.spark.jobs.begin import begin_process
from kafka_rescale.spark.jobs.job import Job, say
from kafka_rescale.spark.jobs.task_errors import as_text
from kafka_rescale.spark.processing.standby_task import StandbyWork, Warmed, run_standby, works_due


@dataclass(frozen=True)
class RunStandbys:
    """Runs standbys of a pipeline; one element of the RDD is the work of one standby.

    :param pipeline: ``module:name``, imported where the task runs.
    """

    connection: KafkaConnection
    pipeline: str

    def __call__(self, works: Iterable[StandbyWork]) -> Iterator[Warmed]:
        """Run each standby, and yield what it has read."""
        begin_process()
        for work in works:
            with as_text():
                parts = {part.id: part for part in pipeline_named(self.pipeline).sub_topologies()}
                done = run_standby(self.connection, work, parts[work.task.subtopology])
            yield done


def keep_warm(job: Job) -> None:
    """Read the committed records of the changelogs of a client's standbys, as they are assigned now.

    :raises RescaleError: a standby has failed; the next job goes on from its saved state.
    """
    request = KeepWarmRequest.model_validate_json(job.arguments.request)
    job.key = request.key
    job.put("running")
    began, as_of_ms = time.monotonic(), now_ms()
    works = _works(job, request, as_of_ms)
    # A restore may take hours. Without a sign of life, a later run would begin another job for the client.
    done: list[Warmed] = job.on_partitions(works, RunStandbys(job.connection, request.pipeline), job.sign)
    for each in done:
        say(f"{job.key}: {each}")
    logs = [log for work in works for log in work.logs.values()]
    job.finish(
        records=sum(each.restored for each in done),
        began=began,
        as_of_ms=as_of_ms,
        partitions=tuple(
            PartitionProgress(topic=log.topic, partition=log.partition, position=log.end, end=log.end)
            for log in logs
        ),
        detail=f"{len(done)} standbys, {sum(each.full_restores for each in done)} stores from nothing",
    )


def _works(job: Job, request: KeepWarmRequest, as_of_ms: int) -> list[StandbyWork]:
    application, pipeline = job.arguments.application, pipeline_named(request.pipeline)
    processing = job.control.read().processing or Processing()
    client = processing.client(request.client_id)
    if client is None:
        return []
    known = known_state(ClusterAdmin(job.connection), application, pipeline, processing.tasks)
    standbys = list(map(TaskId.parse, client.standbys))
    return works_due(application, request.state_dir, standbys, known.logs, as_of_ms)
