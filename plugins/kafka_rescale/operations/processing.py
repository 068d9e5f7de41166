"""Before a run of a pipeline: its internal topics are there, and every task has its thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka_rescale.core.control_records import Concern, ControlState
from kafka_rescale.core.errors import Outage, Refused
from kafka_rescale.core.partition_counts import partition_counts
from kafka_rescale.core.pipeline.builder import Pipeline
from kafka_rescale.core.pipeline_application import PipelineApplication
from kafka_rescale.core.pipelines import pipeline_named
from kafka_rescale.core.processing.backfill import Backfill, topics_of
from kafka_rescale.core.processing.internal_topics import KEEP_ALL, internal_topics, levels, tasks_of
from kafka_rescale.core.processing.record import Processing, next_run
from kafka_rescale.core.processing.request import ProcessRequest
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.control_topic import ControlTopic
from kafka_rescale.kafka.task_progress import TaskProgress
from kafka_rescale.kafka.waiting import now_ms
from kafka_rescale.operations.backfills import require_interval
from kafka_rescale.spark.process_work import works_of
from kafka_rescale.spark.task_work import RENEW_MS


@dataclass(frozen=True)
class Prepared:
    """What was found and done.

    :param created: internal topics that were missing.
    """

    processing: Processing
    created: tuple[str, ...]

    def __str__(self) -> str:
        made = f"created {', '.join(self.created)}; " if self.created else ""
        threads = (f"{t.name}: {', '.join(t.tasks) or 'no task'}" for t in self.processing.threads)
        return made + "; ".join(threads)


def prepare(
    application: PipelineApplication, connection: KafkaConnection, run: str, backfill: Backfill | None = None
) -> Prepared:
    """Create what is missing of the internal topics, and give every task to a thread for this run.

    Idempotent: the same run is given the same assignment again.

    :param application: under the id of its generation.
    :param run: ``<dag_id>/<run_id>``.
    :param backfill: the interval that the generation is for.
    :raises Refused: a topic that the pipeline reads or writes doesn't exist, or what the interval needs is gone.
    :raises UnsafeState: an internal topic has another number of partitions than its tasks.
    """
    pipeline, admin = pipeline_named(application.pipeline), ClusterAdmin(connection)
    control = ControlTopic(connection, application.application_id)
    counts = _external_counts(pipeline, admin, backfill)
    if backfill is not None:
        require_interval(connection, pipeline.topology, backfill)
    created = _ensure_internal_topics(application.application_id, pipeline, admin, counts, backfill)
    every = {**counts, **partition_counts(pipeline.topology, counts, pipeline.enforced_partitions)}
    tasks = {part.id: tasks_of(part, every) for part in pipeline.sub_topologies()}

    def assigned(state: ControlState) -> Mapping[str, Processing]:
        before = state.processing
        if before is not None and before.run == run and before.tasks == tasks:
            return {}
        known = application.application_id, run, application.num_stream_threads, tasks
        return {Concern.PROCESSING: next_run(before, *known)}

    processing = control.update(assigned).processing
    assert processing is not None
    return Prepared(processing, created)


def is_idle(
    application: PipelineApplication, connection: KafkaConnection, run: str, request: ProcessRequest
) -> bool:
    """Return whether a thread has nothing to do, so that no driver has to be started for it.

    :param run: ``<dag_id>/<run_id>``; the job itself refuses what was assigned by another one.
    """
    pipeline, admin = pipeline_named(application.pipeline), ClusterAdmin(connection)
    processing = ControlTopic(connection, application.application_id).read().processing
    if processing is None or processing.run != run:
        return False
    tasks = processing.tasks_of(request.thread, levels(pipeline.topology)[request.level - 1])
    try:
        works = works_of(admin, pipeline, application.application_id, tasks, request.state_dir, request.backfill)
    except Outage:
        return False  # a transaction of a killed attempt is open: the job ends it
    ends = {source: end for work in works for source, end in work.ends.items()}
    progress = TaskProgress(connection, application.application_id, ends, 0)
    try:
        return progress.is_idle(now_ms() - RENEW_MS)
    finally:
        progress.close()


def _external_counts(pipeline: Pipeline, admin: ClusterAdmin, backfill: Backfill | None) -> dict[str, int]:
    wanted = {*topics_of(pipeline.topology, backfill)}
    found = admin.describe_topics(wanted)
    if missing := sorted(wanted - found.keys()):
        raise Refused(
            f"topics {', '.join(missing)}",
            found="no such topics",
            expected="every input and output of the pipeline",
            remedy="Create them, with as many partitions as they shall have.",
        )
    return {name: topic.partitions for name, topic in found.items()}


def _ensure_internal_topics(
    application_id: str,
    pipeline: Pipeline,
    admin: ClusterAdmin,
    counts: Mapping[str, int],
    backfill: Backfill | None,
) -> tuple[str, ...]:
    factor = min(3, admin.broker_count())
    inputs = {topic: counts[topic] for topic in pipeline.topology.inputs}
    wanted = internal_topics(
        application_id, pipeline.topology, pipeline.sub_topologies(), inputs, pipeline.enforced_partitions
    )
    kept = {} if backfill is None else KEEP_ALL
    return tuple(_created(admin, factor, ((t.name, t.partitions, {**t.configs, **kept}) for t in wanted)))


def _created(
    admin: ClusterAdmin, factor: int, topics: Iterable[tuple[str, int, Mapping[str, str]]]
) -> Iterable[str]:
    for name, partitions, configs in topics:
        if admin.ensure_topic(name, partitions, factor, configs):
            yield name
