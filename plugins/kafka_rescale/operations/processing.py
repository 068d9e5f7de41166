"""Before a run of a pipeline: its internal topics are there, and every task has its thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_rescale.core.control_records import Concern, ControlState
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.pipeline_application import PipelineApplication
from kafka_rescale.core.pipelines import pipeline_named
from kafka_rescale.core.processing.internal_topics import levels
from kafka_rescale.core.processing.record import Processing, next_run
from kafka_rescale.core.processing.request import ProcessRequest
from kafka_rescale.core.values import Value
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.control_topic import ControlTopic
from kafka_rescale.kafka.task_progress import TaskProgress
from kafka_rescale.kafka.waiting import now_ms
from kafka_rescale.operations.processors import Expansions, hand_over, remember
from kafka_rescale.spark.process_work import works_of
from kafka_rescale.spark.task_work import RENEW_MS


@dataclass(frozen=True)
class Prepared:
    """What was found and done.

    :param created: internal topics that were missing.
    :param expansions: what has become of processors that were asked for.
    """

    processing: Processing
    created: tuple[str, ...]
    expansions: tuple[str, ...] = ()

    def __str__(self) -> str:
        made = (f"created {', '.join(self.created)}",) if self.created else ()
        threads = (f"{t.name}: {', '.join(t.tasks) or 'no task'}" for t in self.processing.threads)
        return "; ".join((*made, *self.expansions, *threads))


def prepare(application: PipelineApplication, connection: KafkaConnection, run: str) -> Prepared:
    """Create what is missing of the internal topics, and give every task to a thread for this run.

    Idempotent: the same run is given the same assignment again.

    :param run: ``<dag_id>/<run_id>``.
    Processors that were asked for are given their partitions here, once they have almost caught up: between two
    runs nobody processes.

    :raises Refused: a topic that the pipeline reads or writes doesn't exist, or has grown in a way that would tear
        keys from their state.
    :raises UnsafeState: an internal topic has another number of partitions than its tasks.
    """
    pipeline, control = (
        pipeline_named(application.pipeline),
        ControlTopic(connection, application.application_id),
    )
    processors, created = remember(application, pipeline, connection, control)
    is_new = (record := control.read().processing) is None or record.run != run
    expansions = Expansions(processors)
    if is_new:
        expansions = hand_over(application, pipeline, connection, processors, run)
    tasks = expansions.processors.tasks

    def assigned(state: ControlState) -> Mapping[str, Value]:
        before = state.processing
        if before is not None and before.run == run and before.tasks == tasks:
            return {}
        known = application.application_id, run, application.num_stream_threads, tasks
        return {
            Concern.PROCESSING: next_run(before, *known),
            Concern.PROCESSORS: expansions.applied_to(state.processors),
        }

    processing = control.update(assigned).processing
    assert processing is not None
    return Prepared(processing, created, expansions.messages)


def is_idle(
    application: PipelineApplication, connection: KafkaConnection, run: str, request: ProcessRequest
) -> bool:
    """Return whether a thread has nothing to do, so that no driver has to be started for it.

    :param run: ``<dag_id>/<run_id>``; the job itself refuses what was assigned by another one.
    """
    pipeline, admin = pipeline_named(application.pipeline), ClusterAdmin(connection)
    state = ControlTopic(connection, application.application_id).read()
    processing, processors = state.processing, state.processors
    if processing is None or processing.run != run:
        return False
    tasks = processing.tasks_of(request.thread, levels(pipeline.topology)[request.level - 1])
    if processing.tasks != processors.tasks:
        return False  # the job itself refuses it
    if any(processors.sub_topologies[task.subtopology].switched_in == run for task in tasks):
        return False  # what moved has to be deleted where it was
    try:
        works = works_of(admin, pipeline, application.application_id, tasks, request.state_dir, processors)
    except Outage:
        return False  # a transaction of a killed attempt is open: the job ends it
    ends = {source: end for work in works for source, end in work.ends.items()}
    progress = TaskProgress(connection, application.application_id, ends, 0)
    try:
        return progress.is_idle(now_ms() - RENEW_MS)
    finally:
        progress.close()
