"""From a description and a target to ordered stages: the most downstream sub-topology first."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_rescale.core.application import Application, InputPolicy
from kafka_rescale.core.changelog_formats import Content
from kafka_rescale.core.foreign_key_joins import (
    key_topic_of,
    left_table,
    left_table_of_store,
    partitioner_of_topic,
)
from kafka_rescale.core.generation_names import GenerationNames, blue_names, green_names
from kafka_rescale.core.plan import Growth, InputPlan, Move, MoveKind, Plan, Stage
from kafka_rescale.core.topology import SubTopology, Topology, foreign_key_kind, partition_counts


def stage_name(index: int, subtopology: SubTopology) -> str:
    """Return the name of a stage's TaskGroup, ``index`` counting from 1 at the most downstream."""
    return f"stage_{index}_subtopology_{subtopology.id}"


def green_application_id(application: str, generation: int) -> str:
    """Return a generation's ``application.id``; the first generation keeps the plain name."""
    return application if generation == 1 else f"{application}-g{generation}"


def target_counts(application: Application, current: Mapping[str, int], target: int) -> dict[str, int]:
    """Return the count that every input topic has after the cutover.

    :param current: partition count per input topic now.
    """
    return {
        i.topic: current[i.topic] if i.policy is InputPolicy.FIXED else max(target, current[i.topic])
        for i in application.inputs
    }


def build_plan(
    application: Application,
    topology: Topology,
    *,
    blue: str,
    generation: int,
    current: Mapping[str, int],
    target: int,
) -> Plan:
    """Return the plan that takes an application from its current counts to ``target``.

    :param blue: ``application.id`` of the running generation.
    :param generation: number of the generation to build.
    :param current: partition count of every existing topic that the application uses, by full name.
    """
    inputs_after = target_counts(application, current, target)
    repartitions_after = partition_counts(topology, inputs_after, application.enforced_counts(target))
    counts = {**inputs_after, **repartitions_after}
    green = green_application_id(application.application_id, generation)
    names = blue_names(application, blue), green_names(application, green)
    stages = tuple(
        Stage(
            index=index,
            name=stage_name(index, subtopology),
            subtopology=subtopology.id,
            grow_outputs=_grown_outputs(application, topology, subtopology, current),
            moves=_moves(application, topology, subtopology, names, current, counts),
        )
        for index, subtopology in enumerate(topology.downstream_first(), start=1)
    )
    return Plan(
        application=application.application_id,
        generation=generation,
        blue=blue,
        green=green,
        partitions=target,
        stages=stages,
        inputs=tuple(
            InputPlan(
                topic=i.topic,
                policy=i.policy,
                partitioner=i.partitioner,
                current=current[i.topic],
                target=inputs_after[i.topic],
            )
            for i in application.inputs
        ),
    )


def _grown_outputs(
    application: Application, topology: Topology, subtopology: SubTopology, current: Mapping[str, int]
) -> tuple[Growth, ...]:
    # A sink that chooses its topic at run time may write every output that no other sink names.
    chosen = {o.topic for o in application.outputs} - set(topology.outputs) if subtopology.dynamic_sinks else set()
    return tuple(
        Growth(topic=o.topic, current=current[o.topic], target=o.partitions)
        for o in application.outputs
        if (o.topic in subtopology.sinks or o.topic in chosen)
        and o.partitions is not None
        and o.partitions > current[o.topic]
    )


def _moves(
    application: Application,
    topology: Topology,
    subtopology: SubTopology,
    names: tuple[GenerationNames, GenerationNames],
    current: Mapping[str, int],
    counts: Mapping[str, int],
) -> tuple[Move, ...]:
    blue, green = names
    before = _by_topology(topology, blue, current)
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


def _by_topology(topology: Topology, blue: GenerationNames, current: Mapping[str, int]) -> dict[str, int]:
    """Return the present counts of all sources that exist, as the topology names them."""
    full = {
        t: blue.repartition(t) if t in topology.repartitions else t
        for s in topology.subtopologies
        for t in s.sources
    }
    return {topic: current[name] for topic, name in full.items() if name in current}


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
