"""The work of a thread's tasks: their sources, and the ends up to which a run reads them.

The ends of the inputs are captured when a run is assigned, and those of the repartition topics when a level
begins. If each level captured the ends of its inputs itself, a later level would read its inputs further than what
the levels before it have written. A join would then miss partners that the next run brings too late. For the same
reason, the end of a topic that the pipeline both writes and reads is captured when a level begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.pipeline.builder import Pipeline
from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.core.processing.backfill import Backfill
from kafka_rescale.core.processing.grown_topic import GrownTopic
from kafka_rescale.core.processing.growth import Declared, grown_static_topics, grown_topics, initial_counts
from kafka_rescale.core.processing.internal_topics import changelogs_of
from kafka_rescale.core.processing.state_copies import NewTask, new_tasks
from kafka_rescale.core.topology.topology import internal_topic
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.transactions import wait_until_complete
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.processing.grown_ends import captured_ends
from kafka_rescale.kafka.processing.hand_over import Sources
from kafka_rescale.kafka.processing.replay_offsets import replay_offsets
from kafka_rescale.spark.processing.task_work import TaskWork


def input_ends(
    admin: ClusterAdmin,
    pipeline: Pipeline,
    application_id: str,
    processors: PipelineProcessors,
    backfill: Backfill | None = None,
) -> PartitionOffsets:
    """Return the ends that the inputs have at this moment, by full names.

    Topics that the pipeline itself writes are left out: later levels of a run read what earlier ones write.

    :param application_id: id of the generation.
    :param processors: the processors as of the run's assignment.
    :param backfill: the interval that the generation processes.
    :raises Outage: a transaction on an input that has grown stays open.
    """
    parts, own = pipeline.sub_topologies(), _written_by(pipeline)
    names = full_names(application_id, pipeline, (t for part in parts for t in part.sources), backfill)
    declared = Declared(processors.linear, pipeline.topology.repartitions, processors.static)
    inputs = {full for topic, full in names.items() if topic not in own}
    return captured_ends(admin, inputs, _grown(parts, processors, declared, names))


def works_of(
    admin: ClusterAdmin,
    pipeline: Pipeline,
    application_id: str,
    tasks: Sequence[TaskId],
    state_dir: str,
    processors: PipelineProcessors,
    backfill: Backfill | None = None,
    cache_bytes: int = 0,
    inputs: PartitionOffsets | None = None,
) -> list[TaskWork]:
    """Return the work of some tasks. All records that their upstream tasks have written lie below the ends.

    :param application_id: id of the generation.
    :param processors: the processors as of the run's assignment; partitions that came later are left to the next
        run.
    :param backfill: the interval that the generation processes.
    :param cache_bytes: size of each task's record cache.
    :param inputs: up to where the run reads the inputs (``input_ends``). An input that is not there is read up to
        its present end.
    :raises Outage: a transaction on a topic that the pipeline writes itself stays open.
    """
    parts = {part.id: part for part in pipeline.sub_topologies()}
    concerned = [parts[number] for number in sorted({task.subtopology for task in tasks})]
    internal = pipeline.topology.repartitions
    touched = [topic for part in concerned for topic in (*part.sources, *part.sinks)]
    names = full_names(application_id, pipeline, touched, backfill)
    own = _written_by(pipeline)
    if fed := sorted(names[t] for part in concerned for t in part.sources if t in own):
        wait_until_complete(admin, fed)
    declared = Declared(processors.linear, internal, processors.static)
    grown = _grown(concerned, processors, declared, names)
    ends = _ends(admin, {names[topic] for part in concerned for topic in part.sources}, grown, inputs or {})
    replayed = {names[t] for part in concerned for t in part.sources if t not in internal}
    begins = {} if backfill is None else replay_offsets(admin, replayed, backfill)
    topics = admin.existing_topics(t for part in concerned for t in _written(part, application_id, names))
    initials = initial_counts(pipeline, processors, declared, names)
    return [
        TaskWork(
            application_id=application_id,
            task=task,
            names={t: names[t] for t in (*part.sources, *part.sinks)},
            ends={(topic, p): ends[topic][p] for topic, p in sources},
            topics={t: topics[t] for t in _written(part, application_id, names)},
            state_dir=state_dir,
            initial=counts.initial,
            processors=counts.count,
            grown={names[t]: grown[names[t]] for t in part.sources if names[t] in grown},
            static_owner=declared.placement(part, processors).static,
            static={names[t]: each for t, each in grown_static_topics(part, processors, declared).items()},
            linear={
                names[t]: initials[names[t]]
                for t in part.sinks
                if names[t] in initials and initials[names[t]] <= topics[names[t]].partitions
            },
            begins={(topic, p): begins[topic][p] for topic, p in sources if topic in begins},
            backfill=backfill,
            cache_bytes=cache_bytes,
        )
        for task in tasks
        for part in [parts[task.subtopology]]
        for counts in [processors.sub_topologies[task.subtopology]]
        for sources in [
            [
                (names[t], p)
                for t in part.sources
                for p in counts.of(task.partition, processors.topics[t].partitions)
            ]
        ]
    ]


def _ends(
    admin: ClusterAdmin, topics: set[str], grown: Mapping[str, GrownTopic], inputs: PartitionOffsets
) -> PartitionOffsets:
    ends = captured_ends(admin, topics, {topic: each for topic, each in grown.items() if topic not in inputs})
    # A topic may have lost its end since. Nobody could read it up to the former one. A partition that has come
    # since is left to the next run: its keys may have earlier records behind the ends of older partitions.
    return {
        topic: {p: min(end, inputs[topic].get(p, 0)) for p, end in its.items()} if topic in inputs else its
        for topic, its in ends.items()
    }


def _grown(
    parts: Iterable[SubTopology], processors: PipelineProcessors, declared: Declared, names: Mapping[str, str]
) -> dict[str, GrownTopic]:
    """Return the grown sources of some sub-topologies, by full names."""
    return {
        names[topic]: each
        for part in parts
        for topic, each in grown_topics(part, processors, declared, names).items()
    }


def _written_by(pipeline: Pipeline) -> frozenset[str]:
    """Return the topics that the pipeline writes itself, by its own names; it may read some of them."""
    return frozenset({*pipeline.topology.repartitions, *pipeline.topology.outputs})


def _written(part: SubTopology, application_id: str, names: Mapping[str, str]) -> list[str]:
    return [*changelogs_of(application_id, part), *(names[topic] for topic in part.sinks)]


def expansion_of(
    application_id: str,
    pipeline: Pipeline,
    connection: KafkaConnection,
    processors: PipelineProcessors,
    number: int,
) -> tuple[list[NewTask], Sources]:
    """Return the tasks that are being added to a sub-topology, and the topics that it reads."""
    part = next(part for part in pipeline.sub_topologies() if part.id == number)
    names = full_names(application_id, pipeline, part.sources)
    topics = ClusterAdmin(connection).existing_topics(changelogs_of(application_id, part))
    sources = Sources(
        {names[topic]: processors.topics[topic].partitions for topic in part.sources},
        {
            names[topic]: found.settled if found.is_settled else None
            for topic in part.sources
            for found in [processors.topics[topic]]
        },
    )
    placement = Declared(processors.linear, pipeline.topology.repartitions, processors.static).placement(
        part, processors
    )
    counts = processors.sub_topologies[number]
    return new_tasks(application_id, number, counts, placement, part.stores, topics), sources


def full_names(
    application_id: str, pipeline: Pipeline, topics: Iterable[str], backfill: Backfill | None = None
) -> dict[str, str]:
    """Return the full names of topics, by the pipeline's own names.

    :param backfill: if there is one, its outputs replace the pipeline's own.
    """
    internal = pipeline.topology.repartitions
    moved = {} if backfill is None else backfill.outputs
    return {t: internal_topic(application_id, t) if t in internal else moved.get(t, t) for t in topics}
