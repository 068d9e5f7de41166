"""What the tasks of a thread have to do now: their sources up to the ends that these have at this moment."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.pipeline.builder import Pipeline
from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.core.processing.backfill import Backfill
from kafka_rescale.core.topology import internal_topic
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.replay_offsets import replay_offsets
from kafka_rescale.kafka.transactions import wait_until_complete
from kafka_rescale.spark.task_work import TaskWork


def works_of(
    admin: ClusterAdmin,
    pipeline: Pipeline,
    application_id: str,
    tasks: Sequence[TaskId],
    state_dir: str,
    backfill: Backfill | None = None,
) -> list[TaskWork]:
    """Return the work of some tasks; what their upstream tasks have written is all below the ends.

    :param application_id: of the generation.
    :param backfill: the interval that the generation is for.
    :raises Outage: a transaction on a repartition topic stays open.
    """
    parts = {part.id: part for part in pipeline.sub_topologies()}
    concerned = [parts[number] for number in sorted({task.subtopology for task in tasks})]
    internal = pipeline.topology.repartitions
    moved = {} if backfill is None else backfill.outputs
    names = {
        topic: internal_topic(application_id, topic) if topic in internal else moved.get(topic, topic)
        for part in concerned
        for topic in (*part.sources, *part.sinks)
    }
    read = {names[topic] for part in concerned for topic in part.sources}
    if fed := sorted(names[t] for part in concerned for t in part.sources if t in internal):
        wait_until_complete(admin, fed)
    ends = admin.end_offsets(read)
    inputs = {names[t] for part in concerned for t in part.sources if t not in internal}
    begins = {} if backfill is None else replay_offsets(admin, inputs, backfill)
    topics = admin.describe_topics(t for part in concerned for t in _written(part, application_id, names))
    return [
        TaskWork(
            application_id=application_id,
            task=task,
            names={t: names[t] for t in (*part.sources, *part.sinks)},
            ends={
                (names[t], task.partition): ends[names[t]][task.partition]
                for t in part.sources
                if task.partition in ends[names[t]]
            },
            topics={t: topics[t] for t in _written(part, application_id, names)},
            state_dir=state_dir,
            begins={
                (names[t], task.partition): begins[names[t]][task.partition]
                for t in part.sources
                if task.partition in begins.get(names[t], {})
            },
            backfill=backfill,
        )
        for task in tasks
        for part in [parts[task.subtopology]]
    ]


def _written(part: SubTopology, application_id: str, names: dict[str, str]) -> list[str]:
    changelogs = [f"{application_id}-{store.changelog_topic}" for store in part.stores if store.is_logged]
    return [*changelogs, *(names[topic] for topic in part.sinks)]
