"""One stream thread's part in one level of a pipeline. Each of its tasks is one Spark partition.

A level is a group of sub-topologies that don't feed each other; the levels before it feed it. See ``levels``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress

from kafka_rescale.core.assignment.stream_threads import client_of
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.errors import Outage, RescaleError, UnsafeState
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.internal_topics import levels
from kafka_rescale.core.processing.late_records import told_dropped
from kafka_rescale.core.processing.request import ProcessRequest
from kafka_rescale.core.topology.topology import internal_topic
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.processing.task_progress import TaskProgress
from kafka_rescale.spark.jobs.job import Job, say
from kafka_rescale.spark.processing.run import RunTasks
from kafka_rescale.spark.processing.task_work import TaskDone, TaskStopped, TaskWork
from kafka_rescale.spark.processing.thread_progress import ThreadProgress
from kafka_rescale.spark.processing.work import works_of

log = logging.getLogger(__name__)

Ended = tuple[list[TaskDone], list[TaskStopped]]
"""The tasks of a job that are done, and those that were stopped, both in the order of the works."""


def process(job: Job) -> None:
    """Run the tasks that a thread was assigned, up to the ends of their sources.

    These are the ends that the inputs had at the run's assignment, and those that the repartition topics have now.

    :raises UnsafeState: another run's assignment is in force.
    :raises RescaleError: a task has failed; the next attempt goes on from the committed offsets. If it was stopped
        by what it has read, the other tasks have come to their ends before.
    """
    request = ProcessRequest.model_validate_json(job.arguments.request)
    job.key = request.key
    pipeline = pipeline_named(request.pipeline)
    processing, processors = assigned(job)
    tasks = processing.tasks_of(request.thread, levels(pipeline.topology)[request.level - 1])
    job.put("running")
    began, as_of_ms, application = time.monotonic(), now_ms(), job.arguments.application
    admin = ClusterAdmin(job.connection)
    works = works_of(
        admin,
        pipeline,
        application,
        tasks,
        request.state_dir,
        processors,
        request.backfill,
        cache_bytes=_cache_bytes(processing, request) // max(1, len(tasks)),
        inputs=processing.input_ends,
    )
    done, stopped = _run(job, works, request, as_of_ms) if works else ([], [])
    for each in done:
        say(f"{job.key}: {each}")
        if told := told_dropped(each.dropped):
            log.warning("task %s: %s", each.task, told)
    for other in stopped:
        say(f"{job.key}: task {other.task} was stopped: {other.failure.error}\n{other.trace}")
    internal = {internal_topic(application, topic) for topic in pipeline.topology.repartitions}
    try:
        _purge(admin, done, internal)
    except RescaleError as error:
        if not stopped:
            raise
        log.warning("processed records of repartition topics are left to the next run: %s", error)
    if stopped:
        raise stopped[0].failure.error
    _finish(job, done, works, as_of_ms, began)


def assigned(job: Job) -> tuple[Processing, PipelineProcessors]:
    """Return the assignment of this run: which thread runs which task.

    :raises UnsafeState: another run's assignment is in force, or processors have changed since the assignment.
    """
    state = job.control.read()
    found = state.processing
    if found is None or found.run != job.arguments.run:
        raise UnsafeState(
            f"pipeline {job.arguments.application}",
            found=f"the assignment of run {found.run}" if found else "no assignment",
            expected=f"the assignment of run {job.arguments.run}",
            remedy="A newer run has begun. To let this one go on, clear its `assign` task.",
        )
    if found.tasks != state.processors.tasks:
        raise UnsafeState(
            f"pipeline {job.arguments.application}",
            found=f"tasks {found.tasks}, and processors {state.processors.tasks}",
            expected="one task per processor",
            remedy="Something has changed since the assignment: clear the run's `assign` task.",
        )
    return found, state.processors


def _cache_bytes(processing: Processing, request: ProcessRequest) -> int:
    """Return the thread's part of its client's record cache, in bytes. Its tasks share that part equally."""
    client = processing.the_client(client_of(request.thread))
    return client.cache_bytes_of_thread(request.cache_bytes)


def _run(job: Job, works: Sequence[TaskWork], request: ProcessRequest, as_of_ms: int) -> Ended:
    ends = {source: end for work in works for source, end in work.ends.items()}
    committed = TaskProgress(job.connection, job.arguments.application, ends, as_of_ms)
    job.report(committed, lambda _: "running")
    context = job.spark().sparkContext
    progress = ThreadProgress(committed, context)
    tasks = context.parallelize(list(works), len(works))
    action = RunTasks(job.connection, request.pipeline)
    try:
        ended = job.run_reported(lambda: tasks.mapPartitions(action).collect(), progress)
    except RescaleError:
        raise
    except Exception:
        # After an error of Spark itself, it matters whether Spark had begun a task. So report once more.
        with suppress(Exception):
            job.report(progress, lambda _: "running")
        raise
    stopped = [each for each in ended if isinstance(each, TaskStopped)]
    if stopped:
        # The result of the failure keeps this report: how far the other tasks have come.
        with suppress(Outage):
            job.report(progress, lambda _: "running")
    return [each for each in ended if isinstance(each, TaskDone)], stopped


def _purge(admin: ClusterAdmin, done: Sequence[TaskDone], internal: set[str]) -> None:
    """Delete processed records of repartition topics, as Kafka Streams does: no other application reads them."""
    before: PartitionOffsets = {}
    for (topic, partition), offset in ((s, o) for each in done for s, o in each.positions.items()):
        if topic in internal:
            before.setdefault(topic, {})[partition] = offset
    admin.delete_records(before)


def _finish(job: Job, done: Sequence[TaskDone], works: Sequence[TaskWork], as_of_ms: int, began: float) -> None:
    ends = {source: end for work in works for source, end in work.ends.items()}
    total = {
        name: sum(getattr(each, name) for each in done) for name in ("emitted", "restored", "dropped", "let_go")
    }
    job.finish(
        records=sum(each.records for each in done),
        began=began,
        as_of_ms=as_of_ms,
        partitions=tuple(
            PartitionProgress(topic=source[0], partition=source[1], position=at, end=ends[source])
            for each in done
            for source, at in sorted(each.positions.items())
        ),
        marks={str(each.task): each.mark for each in done},
        progressed_ms=now_ms() if done else 0,
        dropped=total["dropped"],
        detail=f"{len(done)} tasks, {', '.join(f'{count} {name}' for name, count in total.items())}",
    )
