"""The topics of a pipeline: their present counts, the counts that they need, and creating or growing them."""

from __future__ import annotations

from collections.abc import Collection

from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.processors import PipelineProcessors, ProcessorCounts
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.pipeline.builder import Pipeline
from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.core.processing.backfill import Backfill, topics_of
from kafka_rescale.core.processing.growth import Declared, observed
from kafka_rescale.core.processing.growth_checks import require_copartitioned
from kafka_rescale.core.processing.internal_topics import KEEP_ALL, changelogs_of, internal_topics
from kafka_rescale.core.processing.linear_topics import require_linear_topics
from kafka_rescale.core.processing.lost_offsets import require_changelogs, require_names, require_no_rest
from kafka_rescale.core.processing.renumbered import renumbered
from kafka_rescale.core.processing.static_topic import require_static_topics
from kafka_rescale.core.topology.partition_counts import partition_counts
from kafka_rescale.core.topology.topic_names import LONGEST_NAME, too_long
from kafka_rescale.core.topology.topology import REPARTITION_SUFFIX, internal_topic
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.spark.processing.work import full_names


def external_counts(pipeline: Pipeline, admin: ClusterAdmin, backfill: Backfill | None = None) -> dict[str, int]:
    """Return the partitions of the inputs and outputs, by full names.

    :param backfill: if there is one, its outputs replace the pipeline's own.
    :raises Refused: a topic doesn't exist.
    """
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


def _refuse_long_names(internal: Collection[str]) -> None:
    if names := too_long(sorted(internal)):
        raise Refused(
            f"topics {', '.join(names)}",
            found=f"names of {', '.join(str(len(name)) for name in names)} characters",
            expected=f"at most {LONGEST_NAME}, which Kafka takes",
            remedy="Name stores and repartitions shorter in the pipeline, or give a shorter `application_id:`.",
        )


class PipelineTopics:
    """The topics of a generation of a pipeline as they are now, and the counts that they need.

    :param application: the application, with the id of the generation.
    :param backfill: the interval that the generation processes.
    :raises Refused: an input or an output doesn't exist, or Kafka does not allow the name of a topic.
    :raises InvalidInput: a declaration under ``linear_hashing`` or ``static_partitioners`` is wrong.
    """

    def __init__(
        self,
        application: PipelineApplication,
        pipeline: Pipeline,
        admin: ClusterAdmin,
        backfill: Backfill | None = None,
    ) -> None:
        self.group, self.pipeline, self._admin = application.application_id, pipeline, admin
        self.parts: tuple[SubTopology, ...] = pipeline.sub_topologies()
        topology = pipeline.topology
        static = application.static_partitioners
        self.declared = Declared(application.linear_hashing, topology.repartitions, static)
        require_static_topics(static, application.linear_hashing, topology, self.parts)
        self._external = external_counts(pipeline, admin, backfill)
        require_linear_topics(application.linear_hashing, topology, application.moved_outputs, self._external)
        self._kept = {} if backfill is None else KEEP_ALL
        self.names = full_names(self.group, pipeline, [topic for part in self.parts for topic in part.sources])
        internal = {self.names[topic] for topic in topology.repartitions} | {
            changelog for part in self.parts for changelog in self._changelogs(part)
        }
        _refuse_long_names(internal)
        self._existing = {name: found.partitions for name, found in admin.describe_topics(internal).items()}
        self._at_ms = now_ms()

    def record(self, known: PipelineProcessors) -> PipelineProcessors:
        """Return the record as of now.

        :raises Refused: a topic has changed in a way that would separate keys from their state, or joined topics
            have different counts, or the program was edited while processors are being added.
        """
        known = self._with_those_of_older_versions(renumbered(known, self.parts))
        anew = {part.id for part in self.parts if self._begins_anew(part, known)}
        counts = self.counts(known, anew)
        found = observed(known, self.parts, counts, self.declared, anew, self._at_ms)
        require_copartitioned(self.pipeline, found, counts, self.declared)
        # A person who deletes all changelogs begins the pipeline anew, including its parts without state.
        every = tuple(sorted(self.changelogs))
        found = found.model_copy(update={"changelogs": every})
        return found.forgotten(self._at_ms) if self._has_lost_its_state else found

    @property
    def changelogs(self) -> dict[str, list[str]]:
        """The topics that the tasks of each changelog read, by changelog, all with full names."""
        return {
            name: [self.names[t] for t in part.sources] for part in self.parts for name in self._changelogs(part)
        }

    def require_names(self, known: PipelineProcessors) -> None:
        """Refuse a pipeline whose edits would leave topics of the previous run behind.

        :raises Refused: there are such topics.
        """
        repartitions = (t for t in known.topics if t.endswith(REPARTITION_SUFFIX))
        before = {*known.changelogs, *(internal_topic(self.group, topic) for topic in repartitions)}
        now = {*self.changelogs, *(self.names[topic] for topic in self.pipeline.topology.repartitions)}
        require_names(self._admin.describe_topics(before - now))

    def require_changelogs(self, known: PipelineProcessors, committed: Collection[TopicPartition]) -> None:
        """Refuse to go on from offsets whose state is gone.

        :raises UnsafeState: a changelog of the previous run is gone.
        """
        require_changelogs(known, self.changelogs, self._existing, committed)

    def require_no_rest(self, committed: Collection[TopicPartition]) -> None:
        """Refuse to begin anew while repartition topics have records of before.

        :raises UnsafeState: without a changelog and without an offset, a repartition topic is not empty.
        """
        own = self._existing.keys() & {self.names[topic] for topic in self.pipeline.topology.repartitions}
        if own and self._has_lost_its_state and not committed:
            require_no_rest(self._admin.begin_offsets(own), self._admin.end_offsets(own, read_committed=False))

    def counts(self, known: PipelineProcessors, anew: Collection[int]) -> dict[str, int]:
        """Return the partition count of every source topic: the present count, or the count that it shall get."""
        inputs = {topic: self._external[topic] for topic in self.pipeline.topology.inputs}
        derived = partition_counts(self.pipeline.topology, inputs, self.pipeline.enforced_partitions)
        wanted = dict(inputs)
        for part in self.parts:
            for topic in derived.keys() & set(part.sources):
                least = derived[topic]
                if part.id not in anew:
                    remembered = known.topics.get(topic)
                    least = remembered.partitions if remembered else self._existing.get(self.names[topic], least)
                    recorded = known.sub_topologies.get(part.id)
                    least = max(least, recorded.expanding_to if recorded else 0)
                wanted[topic] = max(least, self._existing.get(self.names[topic], 0))
        return wanted

    def ensure(self, record: PipelineProcessors) -> tuple[str, ...]:
        """Create missing internal topics, and grow those that need more partitions."""
        factor = min(3, self._admin.broker_count())
        counts = {topic: found.partitions for topic, found in record.topics.items()}
        changelogs = {number: found.largest for number, found in record.sub_topologies.items()}
        ahead = {
            n: record.sub_topologies[part.id].growing_to for part in self.parts for n in self._changelogs(part)
        }
        created = []
        grows = {self.names[t] for t in self.pipeline.topology.repartitions} | {
            name for part in self.parts if part.id in record.expanding for name in self._changelogs(part)
        }
        for topic in internal_topics(self.group, self.pipeline.topology, self.parts, counts, changelogs):
            if topic.name in grows and 0 < self._existing.get(topic.name, 0) < topic.partitions:
                self._admin.grow_topic(topic.name, topic.partitions)
            # Growth is not atomic: some changelogs may have grown for processors that are not recorded yet.
            count = max(topic.partitions, min(ahead.get(topic.name, 0), self._existing.get(topic.name, 0)))
            if self._admin.ensure_topic(topic.name, count, factor, {**topic.configs, **self._kept}):
                created.append(topic.name)
        return tuple(created)

    @property
    def _has_lost_its_state(self) -> bool:
        """Whether the pipeline has changelogs, and none of them exists."""
        every = self.changelogs.keys()
        return bool(every) and not self._existing.keys() & every

    def _begins_anew(self, part: SubTopology, known: PipelineProcessors) -> bool:
        """Return whether no state of a sub-topology is left.

        That is so if none of its changelogs exists. A first store is no lost state, however: if processors were
        added before, its sub-topology keeps them. A sub-topology without changelogs begins anew if one of its
        topics has fewer partitions than were recorded.
        """
        if (counts_of := known.sub_topologies.get(part.id)) is None:
            return True
        if changelogs := self._changelogs(part):
            if any(name in self._existing for name in changelogs):
                return False
            was_added = counts_of.largest > counts_of.initial
            return any(name in known.changelogs for name in changelogs) or not was_added
        counts = self.counts(known, ())
        return any(
            topic in known.topics and counts[topic] < known.topics[topic].partitions for topic in part.sources
        )

    def _with_those_of_older_versions(self, known: PipelineProcessors) -> PipelineProcessors:
        """Return the record. Where an older version didn't record processors, the changelogs tell their number."""
        found = {
            part.id: ProcessorCounts(initial=count, count=count)
            for part in self.parts
            for count in {self._existing[c] for c in self._changelogs(part) if c in self._existing}
            if part.id not in known.sub_topologies
        }
        return known.model_copy(update={"sub_topologies": {**known.sub_topologies, **found}}) if found else known

    def _changelogs(self, part: SubTopology) -> list[str]:
        return changelogs_of(self.group, part)
