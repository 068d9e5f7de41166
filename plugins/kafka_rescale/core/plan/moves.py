"""The internal topics of a sub-topology, and the move of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka_rescale.core.application.generation_names import GenerationNames
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.formats.changelog_formats import Content
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.plan.foreign_key_joins import (
    key_topic_of,
    left_table,
    left_table_of_store,
    partitioner_of_topic,
)
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.core.topology.topology import SubTopology, Topology, foreign_key_kind


def planned_moves(
    application: Application,
    topology: Topology,
    subtopology: SubTopology,
    names: tuple[GenerationNames, GenerationNames],
    current: Mapping[str, int],
    inputs: Sequence[InputPlan],
    counts: Mapping[str, int],
) -> tuple[Move, ...]:
    """Return the moves of a sub-topology's changelogs, and of the repartition topics that it reads.

    :param names: names of the running generation, and of the generation to build.
    :param current: partition count of every existing topic, by full name.
    :param inputs: the inputs, each with its name and its count in the running generation.
    :param counts: partition count after the cutover of every source topic, as the topology names it.
    """
    blue, green = names
    before = _by_topology(topology, blue, current, inputs)
    changelogs = (
        _changelog(application, topology, store, names, current, before, counts) for store in subtopology.stores
    )
    repartitions = (
        Move(
            kind=MoveKind.REPARTITION,
            source=blue.repartition(topic),
            target=green.repartition(topic),
            store=topic,
            partitioner=partitioner_of_topic(application, topology, topic),
            key_topic=key_topic_of(topology, topic),
            left=left_table(application, topology, topic, before, counts)
            if foreign_key_kind(topic) == "registration"
            else None,
            source_partitions=current[blue.repartition(topic)],
            target_partitions=counts[topic],
        )
        for topic in subtopology.sources
        if topic in topology.repartitions
    )
    return (*changelogs, *repartitions)


def _by_topology(
    topology: Topology, blue: GenerationNames, current: Mapping[str, int], inputs: Sequence[InputPlan]
) -> dict[str, int]:
    """Return the counts of all sources as the running generation knows them, as the topology names them.

    An input that was repartitioned has another name by now. An input that was grown by hand has more partitions.
    But the generation's own records refer to partitions of the count that the generation knows.
    """
    internal = {t: blue.repartition(t) for t in topology.repartitions}
    return {
        **{i.declared: i.earlier or i.current for i in inputs},
        **{topic: current[name] for topic, name in internal.items() if name in current},
    }


def _changelog(
    application: Application,
    topology: Topology,
    store: str,
    names: tuple[GenerationNames, GenerationNames],
    current: Mapping[str, int],
    before: Mapping[str, int],
    counts: Mapping[str, int],
) -> Move:
    blue, green = names
    declared = application.store_named(store)
    return Move(
        kind=MoveKind.CHANGELOG,
        source=blue.changelog(store),
        target=green.changelog(store),
        store=store,
        store_type=declared.type,
        partitioning_key=declared.partitioning_key,
        partitioner=declared.partitioner,
        key_topic=topology.source_of(store),
        left=left_table_of_store(application, topology, store, before, counts)
        if declared.format.has(Content.SUBSCRIPTIONS)
        else None,
        source_partitions=current[blue.changelog(store)],
        target_partitions=max(counts[t] for t in topology.subtopology_of(store).sources),
    )
