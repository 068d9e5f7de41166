"""The processors of a pipeline: they are recorded from its first start, and expanded while it runs (KIP-287)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.partitioning.user_function import NotThereYet
from kafka_rescale.core.pipeline.builder import Pipeline
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.backfill import Backfill
from kafka_rescale.core.processing.grown_topic import GrownTopic
from kafka_rescale.core.processing.growth import grown_static_topics, grown_topics
from kafka_rescale.core.processing.growth_checks import require_order
from kafka_rescale.core.processing.lost_offsets import positions_of, require_offsets, with_begun
from kafka_rescale.core.processing.processor_expansion import expanded
from kafka_rescale.core.processing.renumbered import left_tasks, require_as_run
from kafka_rescale.core.processing.static_topic import StaticTopic
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.lease import update_despite_races
from kafka_rescale.kafka.processing.hand_over import HandOver
from kafka_rescale.kafka.processing.task_producer import fence
from kafka_rescale.kafka.reading.committed import AT_ONCE, closing_consumer, read_committed
from kafka_rescale.kafka.reading.sampling import sample
from kafka_rescale.operations.processing.backfills import require_interval
from kafka_rescale.operations.processing.internal_growth import grow_internal_topics
from kafka_rescale.operations.processing.topics import PipelineTopics, external_counts
from kafka_rescale.spark.processing.task_work import transactional_id
from kafka_rescale.spark.processing.work import expansion_of


@dataclass(frozen=True)
class Expansions:
    """The state of expansions that were asked for.

    :param processors: the record, with new processors that have their partitions now.
    :param messages: a line for each sub-topology that was being expanded.
    :param switched: the sub-topologies whose new processors have just been given their partitions.
    """

    processors: PipelineProcessors
    messages: tuple[str, ...] = ()
    switched: tuple[int, ...] = ()

    def applied_to(self, known: PipelineProcessors) -> PipelineProcessors:
        """Return the present record with the sub-topologies that have switched."""
        changed = {number: self.processors.sub_topologies[number] for number in self.switched}
        return known.model_copy(update={"sub_topologies": {**known.sub_topologies, **changed}})


def expand_processors(
    application: PipelineApplication, connection: KafkaConnection, target: int, chosen: Collection[int] = ()
) -> PipelineProcessors:
    """Ask for more processors, and return their record. The new processors warm up from the next run on.

    This is idempotent. First it grows changelogs and repartition topics as far as needed, but no inputs. If
    brokers refuse that, nothing is asked for, and runs go on with the processors that there are.

    :param target: number of processors for each of the sub-topologies.
    :param chosen: sub-topologies by number; if empty, all of them.
    :raises InvalidInput: there is no such sub-topology, or the pipeline has never run.
    :raises Refused: an input has fewer partitions, or there are more processors already, or the program was edited
        since the last run.
    :raises RescaleError: a changelog or a repartition topic could not be grown.
    """
    pipeline, admin = pipeline_named(application.pipeline), ClusterAdmin(connection)
    control = ControlTopic(connection, application.application_id)
    repartitions, parts = pipeline.topology.repartitions, pipeline.sub_topologies()
    counts = external_counts(pipeline, admin)

    def after(known: PipelineProcessors) -> PipelineProcessors:
        require_as_run(known, parts)
        return expanded(known, parts, counts, repartitions, target, chosen)

    def asked(state: ControlState) -> Mapping[str, PipelineProcessors]:
        wanted = after(state.processors)
        return {} if wanted == state.processors else {Concern.PROCESSORS: wanted}

    before = control.read().processors
    if more := set(after(before).expanding) - set(before.expanding):
        grow_internal_topics(application.application_id, pipeline, admin, control, dict.fromkeys(more, target))
    return update_despite_races(control, asked).processors


def is_split(application_id: str, connection: KafkaConnection, client_id: str) -> bool:
    """Return whether new processors are being split from a client's tasks."""
    state = ControlTopic(connection, application_id).read()
    client = state.processing.client(client_id) if state.processing is not None else None
    return client is not None and not state.processors.split.isdisjoint(client.active)


def remember(
    application: PipelineApplication,
    pipeline: Pipeline,
    connection: KafkaConnection,
    control: ControlTopic,
    backfill: Backfill | None = None,
) -> tuple[PipelineProcessors, tuple[str, ...]]:
    """Record new and grown topics, and create or grow the internal topics accordingly.

    :param application: the application, with the id of its generation.
    :param backfill: the interval that the generation processes.
    :returns: the record, and the internal topics that were created.
    :raises Refused: a topic doesn't exist, or has changed in a way that would separate keys from their state; or
        records that the interval needs are gone.
    :raises UnsafeState: keys are not where linear hashing puts them, or an internal topic has another count, or
        either offsets or the state that they stand for are gone, or both are gone and a repartition topic is not
        empty.
    """
    admin = ClusterAdmin(connection)
    now = PipelineTopics(application, pipeline, admin, backfill)
    before = control.read()
    now.require_names(before.processors)
    found = now.record(before.processors)
    if backfill is not None:
        require_interval(connection, pipeline.topology, backfill)
        live = ControlTopic(connection, backfill.application(application.application_id)).read().processors
        require_order(live, found, now.parts, now.declared)
    committed = _committed(connection, now, found)
    now.require_changelogs(before.processors, committed)
    now.require_no_rest(committed)
    said = positions_of(before.results.values())
    sources = [now.names[topic] for topic in found.topics]
    # In the first run, the repartition topics are made below.
    begins = {} if backfill is not None else admin.begin_offsets(set(sources) - admin.absent_of(sources))
    require_offsets(with_begun(found, now.names, committed, said), now.names, committed, begins, said)
    try:
        _check_samples(connection, admin, now, found)
    except NotThereYet as outside:
        # The input may have grown once more since it was counted. If it has not, the error stands.
        counted = {now.names[topic]: known.partitions for topic, known in found.topics.items()}
        admin.await_growth(counted, outside)
        return remember(application, pipeline, connection, control, backfill)
    # The tasks have other ids now, and would not fence an old job that is still at work.
    for task in left_tasks(before.processors, now.parts):
        fence(connection, transactional_id(application.application_id, task))
    created = now.ensure(found)

    def noted(state: ControlState) -> Mapping[str, PipelineProcessors]:
        record = _settled(application, admin, now, now.record(state.processors))
        record = with_begun(record, now.names, committed, said)
        return {} if record == state.processors else {Concern.PROCESSORS: record}

    return update_despite_races(control, noted).processors, created


def hand_over(
    application: PipelineApplication,
    pipeline: Pipeline,
    connection: KafkaConnection,
    processors: PipelineProcessors,
    run: str,
) -> Expansions:
    """Give new processors their partitions, if they have almost caught up.

    :param run: ``<dag_id>/<run_id>``, which has no assignment yet.
    :raises Fenced: an old run has interfered; run again.
    """
    found = Expansions(processors)
    for number in processors.expanding:
        counts = processors.sub_topologies[number]
        tasks, sources = expansion_of(application.application_id, pipeline, connection, processors, number)
        over = HandOver(connection, tasks, sources)
        goal = f"sub-topology {number} goes from {counts.count} to {counts.largest} processors"
        if reason := over.waits_for(application.acceptable_recovery_lag):
            found = replace(found, messages=(*found.messages, f"{goal}: {reason}"))
            continue
        over.perform()
        copied = over.copied()
        changed = {"count": counts.largest, "expanding_to": 0, "switched_in": run, "copied": copied}
        moved = f"{copied:,} changelog records copied to new processors, none between existing ones"
        found = Expansions(
            found.processors.with_counts(number, **changed),
            (*found.messages, f"{goal} in this run: {moved}"),
            (*found.switched, number),
        )
    return found


def _committed(
    connection: KafkaConnection, now: PipelineTopics, record: PipelineProcessors
) -> Collection[TopicPartition]:
    """Return the source partitions that have an offset, even if a killed attempt has left a transaction open."""
    sources = [(now.names[topic], p) for topic, known in record.topics.items() for p in range(known.partitions)]
    with closing_consumer(connection, now.group, **AT_ONCE) as consumer:
        return read_committed(consumer, sources).keys()


def _check_samples(
    connection: KafkaConnection, admin: ClusterAdmin, now: PipelineTopics, record: PipelineProcessors
) -> None:
    """Check some records of every input that has grown: are they where the declared partitioner puts them?"""
    grown = {
        # The oldest records may be from before the last expansion, when there were fewer processors.
        found.topic: replace(found, processors=found.initial)
        for part in now.parts
        if part.stores
        for topic, found in grown_topics(part, record, now.declared, now.names).items()
        if not found.settled and topic not in now.declared.repartitions
    }
    static = {
        topic: found
        for part in now.parts
        if part.stores
        for topic, found in grown_static_topics(part, record, now.declared).items()
    }
    topics: dict[str, GrownTopic | StaticTopic] = {**grown, **static}
    if topics:
        begins, ends = admin.begin_offsets(topics), admin.end_offsets(topics)
        for each in sample(connection, begins, ends).samples:
            topics[each.topic].check([(each.partition, each.offset, each.key)])


def _settled(
    application: PipelineApplication, admin: ClusterAdmin, now: PipelineTopics, record: PipelineProcessors
) -> PipelineProcessors:
    """Record the ends of topics that grew so long ago that every producer knows it."""
    before = now_ms() - application.growth_settle_ms
    for topic, found in record.topics.items():
        if not found.is_settled and found.grown_at_ms <= before:
            ends = admin.end_offsets([now.names[topic]], read_committed=False)[now.names[topic]]
            record = record.with_settled(topic, {p: end for p, end in ends.items() if p < found.partitions})
    return record
