"""The processors of a pipeline: remembered from its first start, and expanded while it runs (KIP-287)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from kafka_rescale.core.control_records import Concern, ControlState
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.partition_counts import partition_counts
from kafka_rescale.core.pipeline.builder import Pipeline
from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.core.pipeline_application import PipelineApplication
from kafka_rescale.core.pipelines import pipeline_named
from kafka_rescale.core.processing.growth import Declared, expanded, grown_topics, observed
from kafka_rescale.core.processing.internal_topics import internal_topics
from kafka_rescale.core.processing.processors_record import PipelineProcessors, ProcessorCounts
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.control_topic import ControlTopic
from kafka_rescale.kafka.hand_over import HandOver
from kafka_rescale.kafka.sampling import sample
from kafka_rescale.kafka.waiting import now_ms
from kafka_rescale.spark.process_work import expansion_of, source_names


@dataclass(frozen=True)
class Expansions:
    """What has become of the processors that were asked for.

    :param processors: with the new ones that have their partitions now.
    :param messages: a line for each sub-topology that was being expanded.
    """

    processors: PipelineProcessors
    messages: tuple[str, ...] = ()
    switched: tuple[int, ...] = ()

    def applied_to(self, known: PipelineProcessors) -> PipelineProcessors:
        """Return the record as it is now, with the sub-topologies that have switched."""
        changed = {number: self.processors.sub_topologies[number] for number in self.switched}
        return known.model_copy(update={"sub_topologies": {**known.sub_topologies, **changed}})


def expand_processors(
    application: PipelineApplication, connection: KafkaConnection, target: int, chosen: Collection[int] = ()
) -> PipelineProcessors:
    """Ask for more processors, and return what is known of them; they warm up from the next run on.

    Idempotent. Repartition topics are grown as far as needed, inputs are not.

    :param target: processors of each of the sub-topologies.
    :param chosen: sub-topologies by number; none are all of them.
    :raises InvalidInput: there is no such sub-topology, or the pipeline has never run.
    :raises Refused: an input has fewer partitions, or there are more processors already.
    """
    pipeline, admin = pipeline_named(application.pipeline), ClusterAdmin(connection)
    repartitions = pipeline.topology.repartitions
    counts = external_counts(pipeline, admin)

    def asked(state: ControlState) -> Mapping[str, PipelineProcessors]:
        parts = pipeline.sub_topologies()
        after = expanded(state.processors, parts, counts, repartitions, target, chosen)
        return {} if after == state.processors else {Concern.PROCESSORS: after}

    return ControlTopic(connection, application.application_id).update(asked).processors


def remember(
    application: PipelineApplication, pipeline: Pipeline, connection: KafkaConnection, control: ControlTopic
) -> tuple[PipelineProcessors, tuple[str, ...]]:
    """Note what has begun and what has grown, and make the internal topics so.

    :returns: the record, and which internal topics were created.
    :raises Refused: a topic doesn't exist, or has changed in a way that would tear keys from their state.
    :raises UnsafeState: keys are not where linear hashing puts them, or an internal topic has another count.
    """
    now, admin = _Now(application, pipeline, ClusterAdmin(connection)), ClusterAdmin(connection)
    found = now.record(control.read().processors)
    _check_samples(connection, admin, now, found)
    created = now.ensure(found)

    def noted(state: ControlState) -> Mapping[str, PipelineProcessors]:
        record = _settled(application, admin, now, now.record(state.processors))
        return {} if record == state.processors else {Concern.PROCESSORS: record}

    return control.update(noted).processors, created


def hand_over(
    application: PipelineApplication,
    pipeline: Pipeline,
    connection: KafkaConnection,
    processors: PipelineProcessors,
    run: str,
) -> Expansions:
    """Give new processors their partitions, where they have almost caught up.

    :param run: ``<dag_id>/<run_id>``, which has no assignment yet.
    :raises Fenced: an old run has come in between; run again.
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


def external_counts(pipeline: Pipeline, admin: ClusterAdmin) -> dict[str, int]:
    """Return the partitions of the inputs and outputs.

    :raises Refused: one doesn't exist.
    """
    topology = pipeline.topology
    wanted = {*topology.inputs, *topology.outputs}
    found = admin.describe_topics(wanted)
    if missing := sorted(wanted - found.keys()):
        raise Refused(
            f"topics {', '.join(missing)}",
            found="no such topics",
            expected="every input and output of the pipeline",
            remedy="Create them, with as many partitions as they shall have.",
        )
    return {name: topic.partitions for name, topic in found.items()}


class _Now:
    """What is on the brokers now."""

    def __init__(self, application: PipelineApplication, pipeline: Pipeline, admin: ClusterAdmin) -> None:
        self._id, self.pipeline, self._admin = application.application_id, pipeline, admin
        self.parts: tuple[SubTopology, ...] = pipeline.sub_topologies()
        topology = pipeline.topology
        self.declared = Declared(application.linear_hashing, topology.repartitions)
        self._external = external_counts(pipeline, admin)
        self.names = {t: n for part in self.parts for t, n in source_names(self._id, pipeline, part).items()}
        internal = {self.names[topic] for topic in topology.repartitions} | {
            changelog for part in self.parts for changelog in self._changelogs(part)
        }
        self._existing = {name: found.partitions for name, found in admin.describe_topics(internal).items()}
        self._at_ms = now_ms()

    def record(self, known: PipelineProcessors) -> PipelineProcessors:
        """Return the record as of now."""
        known = self._with_those_of_older_versions(known)
        anew = {part.id for part in self.parts if self._begins_anew(part, known)}
        return observed(known, self.parts, self.counts(known, anew), self.declared, anew, self._at_ms)

    def counts(self, known: PipelineProcessors, anew: Collection[int]) -> dict[str, int]:
        """Return the partitions of every source topic: as they are, or as they shall be."""
        inputs = {topic: self._external[topic] for topic in self.pipeline.topology.inputs}
        derived = partition_counts(self.pipeline.topology, inputs, self.pipeline.enforced_partitions)
        wanted = dict(inputs)
        for part in self.parts:
            for topic in derived.keys() & set(part.sources):
                least = derived[topic]
                if part.id not in anew:
                    remembered = known.topics.get(topic)
                    least = remembered.partitions if remembered else self._existing.get(self.names[topic], least)
                    least = max(least, known.sub_topologies[part.id].expanding_to)
                wanted[topic] = max(least, self._existing.get(self.names[topic], 0))
        return wanted

    def ensure(self, record: PipelineProcessors) -> tuple[str, ...]:
        """Create the internal topics that are missing, grow those that shall have more partitions."""
        factor = min(3, self._admin.broker_count())
        counts = {topic: found.partitions for topic, found in record.topics.items()}
        changelogs = {number: found.largest for number, found in record.sub_topologies.items()}
        created = []
        grows = {self.names[t] for t in self.pipeline.topology.repartitions} | {
            name for part in self.parts if part.id in record.expanding for name in self._changelogs(part)
        }
        for topic in internal_topics(self._id, self.pipeline.topology, self.parts, counts, changelogs):
            if topic.name in grows and 0 < self._existing.get(topic.name, 0) < topic.partitions:
                self._admin.grow_topic(topic.name, topic.partitions)
            if self._admin.ensure_topic(topic.name, topic.partitions, factor, topic.configs):
                created.append(topic.name)
        return tuple(created)

    def _begins_anew(self, part: SubTopology, known: PipelineProcessors) -> bool:
        """Whether nothing is left: no changelog; or, where there never was one, fewer partitions."""
        if part.id not in known.sub_topologies:
            return True
        if changelogs := self._changelogs(part):
            return not any(name in self._existing for name in changelogs)
        counts = self.counts(known, ())
        return any(
            topic in known.topics and counts[topic] < known.topics[topic].partitions for topic in part.sources
        )

    def _with_those_of_older_versions(self, known: PipelineProcessors) -> PipelineProcessors:
        """Of a pipeline that ran before processors were remembered, the changelogs say how many there were."""
        found = {
            part.id: ProcessorCounts(initial=count, count=count)
            for part in self.parts
            for count in {self._existing[c] for c in self._changelogs(part) if c in self._existing}
            if part.id not in known.sub_topologies
        }
        return known.model_copy(update={"sub_topologies": {**known.sub_topologies, **found}}) if found else known

    def _changelogs(self, part: SubTopology) -> list[str]:
        return [f"{self._id}-{store.changelog_topic}" for store in part.stores if store.is_logged]


def _check_samples(
    connection: KafkaConnection, admin: ClusterAdmin, now: _Now, record: PipelineProcessors
) -> None:
    """Look at some records of every input that has grown: are they where the declared partitioner puts them?"""
    grown = {
        # The oldest records may be from before the last expansion, when all of these had fewer processors.
        found.topic: replace(found, processors=found.initial)
        for part in now.parts
        if part.stores
        for topic, found in grown_topics(part, record, now.declared, now.names).items()
        if not found.settled and topic not in now.declared.repartitions
    }
    if grown:
        begins, ends = admin.begin_offsets(grown), admin.end_offsets(grown)
        for each in sample(connection, begins, ends).samples:
            grown[each.topic].check([(each.partition, each.offset, each.key)])


def _settled(
    application: PipelineApplication, admin: ClusterAdmin, now: _Now, record: PipelineProcessors
) -> PipelineProcessors:
    """Note the ends of topics that have grown so long ago that every producer knows."""
    before = now_ms() - application.growth_settle_ms
    for topic, found in record.topics.items():
        if not found.is_settled and found.grown_at_ms <= before:
            ends = admin.end_offsets([now.names[topic]], read_committed=False)[now.names[topic]]
            record = record.with_settled(topic, {p: end for p, end in ends.items() if p < found.partitions})
    return record
