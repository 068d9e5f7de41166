"""From a description and a target to ordered stages: the most downstream sub-topology first."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_rescale.core.application.generation_names import blue_names, green_names
from kafka_rescale.core.application.streams import Application, Mode
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.plan.external_topics import Growth, InputPlan
from kafka_rescale.core.plan.moves import planned_moves
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan, Stage
from kafka_rescale.core.plan.producers import with_producers
from kafka_rescale.core.topology.partition_counts import partition_counts
from kafka_rescale.core.topology.topology import SubTopology, Topology


def stage_name(index: int, subtopology: SubTopology) -> str:
    """Return the name of a stage's TaskGroup, ``index`` counting from 1 at the most downstream."""
    return f"stage_{index}_subtopology_{subtopology.id}"


def green_application_id(application: str, generation: int) -> str:
    """Return a generation's ``application.id``; the first generation keeps the plain name."""
    return application if generation == 1 else f"{application}-g{generation}"


def green_of(application: Application, blue: str, generation: int) -> str:
    """Return the ``application.id`` that an expansion leads to. In place, it stays the same.

    :param blue: ``application.id`` of the running generation.
    :param generation: number of the generation to build.
    """
    if application.mode is Mode.IN_PLACE:
        return blue
    return green_application_id(application.application_id, generation)


def target_counts(application: Application, current: Mapping[str, int], target: int) -> dict[str, int]:
    """Return the count that every input topic has after the cutover.

    :param current: partition count per input topic now, by the name in the application file.
    """
    return {i.topic: _target_count(i.policy, current[i.topic], target) for i in application.inputs}


def _target_count(policy: InputPolicy, current: int, target: int) -> int:
    """Return the count of an input: a topic can't lose partitions, but a successor may have fewer."""
    if policy is InputPolicy.REPARTITIONED:
        return target
    return current if policy is InputPolicy.FIXED else max(target, current)


def build_plan(
    application: Application,
    topology: Topology,
    *,
    blue: str,
    generation: int,
    current: Mapping[str, int],
    target: int,
    renamed: Mapping[str, str] | None = None,
    earlier: Mapping[str, int] | None = None,
    grown_from: Mapping[str, tuple[int, ...]] | None = None,
    codecs: Mapping[str, str] | None = None,
    running_with: int = 0,
) -> Plan:
    """Return the plan that takes an application from its current counts to ``target``.

    :param blue: ``application.id`` of the running generation.
    :param generation: number of the generation to build.
    :param current: partition count of every existing topic that the application uses, by full name.
    :param renamed: by input, the topic that blue reads instead, after an expansion that repartitioned the input.
    :param earlier: the count that blue knows of an input that was grown by hand.
    :param grown_from: earlier counts of internal topics that were grown in place.
    :param codecs: codecs of topics with compressed records, by full name.
    :param running_with: the count with which an expansion has started the running generation; 0 if unknown.
    """
    inputs = _input_plans(application, current, target, renamed or {}, earlier or {})
    inputs_after = {i.declared: i.target for i in inputs}
    green = green_of(application, blue, generation)
    names = blue_names(application, blue), green_names(application, green)
    full = {topic: names[0].repartition(topic) for topic in topology.repartitions}
    present = {topic: current[name] for topic, name in full.items() if name in current}
    set_by_program = application.enforced_counts(target, present)
    repartitions_after = partition_counts(topology, inputs_after, set_by_program)
    counts = {**inputs_after, **repartitions_after}
    ordered = topology.downstream_first()
    stages = tuple(
        Stage(
            index=index,
            name=stage_name(index, subtopology),
            subtopology=subtopology.id,
            grow_outputs=_grown_outputs(application, subtopology, current),
            moves=_as_found(
                planned_moves(application, topology, subtopology, names, current, inputs, counts),
                grown_from or {},
                codecs or {},
            ),
            bridges=_as_found(_bridges(inputs, subtopology, ordered[: index - 1]), {}, codecs or {}),
            not_copied=subtopology.unlogged,
        )
        for index, subtopology in enumerate(ordered, start=1)
    )
    return Plan(
        application=application.application_id,
        generation=generation,
        blue=blue,
        green=green,
        partitions=target,
        stages=stages,
        inputs=inputs,
        started_with=max(
            (
                m.source_partitions
                for s in stages
                for m in s.repartitions
                if m.store in application.repartitions_of_start_command
            ),
            default=running_with,
        ),
    )


def _as_found(
    moves: tuple[Move, ...], grown_from: Mapping[str, tuple[int, ...]], codecs: Mapping[str, str]
) -> tuple[Move, ...]:
    """Return moves with the growths and codecs that were found for their sources, and their producers."""
    found = [
        m.model_copy(update={"grown_from": grown_from.get(m.source, ()), "compression": codecs.get(m.source, "")})
        for m in moves
    ]
    return with_producers(found)


def _input_plans(
    application: Application,
    current: Mapping[str, int],
    target: int,
    renamed: Mapping[str, str],
    earlier: Mapping[str, int],
) -> tuple[InputPlan, ...]:
    topics = {i.topic: renamed.get(i.topic, i.topic) for i in application.inputs}
    counts = {name: current[topic] for name, topic in topics.items()}
    after = target_counts(application, counts, target)
    return tuple(
        InputPlan(
            topic=topics[i.topic],
            policy=i.policy,
            partitioner=i.partitioner,
            current=counts[i.topic],
            target=after[i.topic],
            name=i.topic if topics[i.topic] != i.topic else "",
            successor=i.successor_topic(target)
            if i.policy is InputPolicy.REPARTITIONED and (counts[i.topic] != target or i.topic in earlier)
            else "",
            earlier=earlier.get(i.topic, 0),
        )
        for i in application.inputs
    )


def _bridges(
    inputs: tuple[InputPlan, ...], subtopology: SubTopology, earlier: tuple[SubTopology, ...]
) -> tuple[Move, ...]:
    """Return the bridges of the inputs that this sub-topology reads and that no earlier stage reads."""
    read_before = {topic for other in earlier for topic in other.sources}
    return tuple(
        Move(
            kind=MoveKind.INPUT,
            source=i.topic,
            target=i.successor,
            store=i.declared,
            partitioner=i.partitioner,
            source_partitions=i.current,
            target_partitions=i.target,
            earlier_partitions=i.earlier,
            key_topic=i.declared,
        )
        for i in inputs
        if i.successor and i.declared in subtopology.sources and i.declared not in read_before
    )


def _grown_outputs(
    application: Application, subtopology: SubTopology, current: Mapping[str, int]
) -> tuple[Growth, ...]:
    return tuple(
        Growth(topic=o.topic, current=current[o.topic], target=o.partitions)
        for o in application.outputs
        if o.topic in subtopology.sinks and o.partitions is not None and o.partitions > current[o.topic]
    )
