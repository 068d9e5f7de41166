"""The reaction of a pipeline to partition counts that have changed (KIP-287)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kafka_rescale.core.control.processors import PipelineProcessors, ProcessorCounts, SourceTopic
from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.core.partitioning.linear_hashing import doubled
from kafka_rescale.core.pipeline.builder import Pipeline
from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.core.processing.grown_topic import GrownTopic
from kafka_rescale.core.processing.static_topic import Placement, StaticTopic, static_topics

BEGIN_ANEW = (
    "to begin anew, delete the changelogs, the repartition topics and the committed offsets of the application"
)


@dataclass(frozen=True)
class Declared:
    """The rules that place the keys of topics, as far as they are known.

    :param linear: by topic whose keys are placed by linear hashing, the partition count at its creation.
    :param repartitions: the topics that the pipeline writes itself, always by linear hashing.
    :param static: by input that has a static partitioner, the function of this partitioner.
    """

    linear: Mapping[str, int]
    repartitions: Collection[str]
    static: Mapping[str, str] = field(default_factory=dict)

    def placement(self, part: SubTopology, processors: PipelineProcessors) -> Placement:
        """Return the rule by which the processors of a sub-topology have the states of keys."""
        counts = {topic: processors.topics[topic].partitions for topic in part.sources}
        # All static inputs of a sub-topology have the same function.
        static = next(iter(static_topics(self.static, part, counts)), None)
        return Placement(processors.sub_topologies[part.id].initial, static)

    def initial_of(self, part: SubTopology, counts: Mapping[str, int]) -> int:
        """Return how many processors a sub-topology begins with.

        This is the declared initial count of the inputs that are placed by linear hashing. If there is no such
        input, it is the largest partition count of all sources.

        :raises InvalidInput: inputs that are read together have different declared counts, or an input has fewer
            partitions now than declared.
        """
        found = {self.linear[topic] for topic in part.sources if topic in self.linear}
        if len(found) > 1:
            raise InvalidInput(
                "linear_hashing",
                found=", ".join(f"{t}: {self.linear[t]}" for t in part.sources if t in self.linear),
                expected=f"one count for all inputs of sub-topology {part.id}, which are read together",
                remedy="Correct the counts, or repartition() one of the streams.",
            )
        if not found:
            return max(counts[topic] for topic in part.sources)
        initial = found.pop()
        for topic in part.sources:
            if counts[topic] < initial:
                raise InvalidInput(
                    f"linear_hashing of {topic}",
                    found=f"{initial}, and a topic of {counts[topic]} partitions",
                    expected="the count that it was created with",
                    remedy="Correct the count: a topic never has fewer partitions than at the beginning.",
                )
        return initial

    def fits(self, topic: str, initial: int) -> bool:
        """Whether linear hashing over this initial count gives the real places of a topic's keys."""
        if topic in self.repartitions:
            return True
        linear = self.linear.get(topic, initial + 1)
        return linear <= initial and doubled(linear, initial) == initial


def observed(
    known: PipelineProcessors,
    parts: Iterable[SubTopology],
    counts: Mapping[str, int],
    declared: Declared,
    anew: Collection[int],
    at_ms: int,
) -> PipelineProcessors:
    """Return the record as of now. It keeps the initial counts, and notes the topics that have grown.

    :param counts: partitions of every source topic, by the pipeline's own names.
    :param anew: sub-topologies that have lost all their state and offsets. They begin as if they had never run.
    :param at_ms: the wall clock.
    :raises Refused: a topic has changed in a way that would separate keys from their state.
    """
    sub_topologies: dict[int, ProcessorCounts] = {}
    topics: dict[str, SourceTopic] = {}
    for part in parts:
        before = None if part.id in anew else known.sub_topologies.get(part.id)
        if before is None:
            initial = declared.initial_of(part, counts)
            before = ProcessorCounts(initial=initial, count=initial)
        sub_topologies[part.id] = before.model_copy(update={"sources": tuple(part.sources)})
        for topic in part.sources:
            last = None if part.id in anew else known.topics.get(topic)
            topics[topic] = _observed(part, topic, counts[topic], last, before, declared, at_ms)
    return PipelineProcessors(
        sub_topologies=sub_topologies, topics=topics, linear=dict(declared.linear), static=dict(declared.static)
    )


def _observed(
    part: SubTopology,
    topic: str,
    count: int,
    last: SourceTopic | None,
    processors: ProcessorCounts,
    declared: Declared,
    at_ms: int,
) -> SourceTopic:
    earlier = last.partitions if last is not None else min(count, processors.initial)
    if last is not None and count == earlier:
        return last
    if count < earlier:
        raise Refused(
            f"partitions of topic {topic!r}",
            found=f"{count}",
            expected=f"at least the {earlier} that it had in the last run",
            remedy=f"It was deleted and made anew. Create it with as many partitions as before; or, {BEGIN_ANEW}.",
        )
    if count > earlier and part.stores and topic not in declared.static:
        _require_linear(topic, earlier, count, processors, declared)
    grown_at_ms = at_ms if count > earlier else 0
    if last is None:
        return SourceTopic(partitions=count, grown_at_ms=grown_at_ms, first=count, since_ms=at_ms)
    grown = {
        "partitions": count,
        "grown_at_ms": grown_at_ms,
        "settled": {},
        "first": last.first or last.partitions,
    }
    return last.model_copy(update=grown)


def _require_linear(topic: str, earlier: int, count: int, processors: ProcessorCounts, declared: Declared) -> None:
    if not declared.fits(topic, processors.initial):
        linear = declared.linear.get(topic)
        raise Refused(
            f"input topic {topic!r} (INCOMPLETE_SOURCE_TOPIC_METADATA)",
            found=f"{count} partitions instead of {earlier}, and producers that place keys by "
            + (f"linear hashing over {linear}" if linear else "no declared linear hashing"),
            expected=f"linear hashing over the initial {processors.initial}, which leaves keys with their state",
            remedy="Any other partitioner has sent keys to tasks without their state. Let the producers use "
            f"linear hashing and declare `linear_hashing: {{{topic}: {processors.initial}}}`; if its partitioner "
            f"is static, declare it under `static_partitioners`; or, {BEGIN_ANEW}.",
        )
    if earlier < processors.count:
        raise Refused(
            f"input topic {topic!r}",
            found=f"{count} partitions instead of {earlier}, for {processors.count} processors",
            expected="a topic that had a partition for each processor before it grew",
            remedy="A sub-topology reads it together with a larger topic, and its keys would change processors. "
            "Call repartition() on it.",
        )


def grown_topics(
    part: SubTopology, processors: PipelineProcessors, declared: Declared, names: Mapping[str, str]
) -> dict[str, GrownTopic]:
    """Return the source topics that have grown and whose keys are placed by linear hashing.

    :param names: by the pipeline's own name of a topic, its full name.
    """
    counts = processors.sub_topologies[part.id]
    return {
        topic: GrownTopic(names[topic], counts.initial, found.partitions, counts.count, found.settled)
        for topic in part.sources
        for found in [processors.topics[topic]]
        if found.grown_at_ms and declared.fits(topic, counts.initial)
    }


def grown_static_topics(
    part: SubTopology, processors: PipelineProcessors, declared: Declared
) -> dict[str, StaticTopic]:
    """Return the inputs that have grown and have a static partitioner. Their keys have kept their partitions."""
    counts = {topic: processors.topics[topic].partitions for topic in part.sources}
    return {
        found.topic: found
        for found in static_topics(declared.static, part, counts)
        if processors.topics[found.topic].grown_at_ms
    }


def initial_counts(
    pipeline: Pipeline, processors: PipelineProcessors, declared: Declared, names: Mapping[str, str]
) -> dict[str, int]:
    """Return the initial counts of the topics that tasks write by linear hashing, by full names.

    These are the topics for which the file declares linear hashing, and all repartition topics. The initial count
    of a repartition topic is the initial number of processors of the sub-topology that reads the topic.

    :param names: by the pipeline's own name of a repartition topic, its full name. The result leaves out the
        repartition topics that have none.
    """
    read = {
        names[topic]: processors.sub_topologies[part.id].initial
        for part in pipeline.sub_topologies()
        for topic in part.sources
        if topic in declared.repartitions and topic in names
    }
    return {**declared.linear, **read}
