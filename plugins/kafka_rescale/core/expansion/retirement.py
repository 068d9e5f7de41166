"""The topics and groups that earlier generations have left, named before any of them is deleted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kafka_rescale.core.application.generation_names import blue_names
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.plan.plan import Plan, copy_group
from kafka_rescale.core.plan.planning import green_application_id
from kafka_rescale.core.topology.topology import Topology


@dataclass(frozen=True)
class Remains:
    """One earlier generation.

    :param topics: its internal topics that still exist, in order.
    :param groups: its own group and the groups of the copies made since; they may be gone.
    """

    application_id: str
    generation: int
    topics: tuple[str, ...]
    groups: tuple[str, ...]


def remains(
    application: Application, topology: Topology, generations: Generations, plan: Plan, existing: Collection[str]
) -> tuple[Remains, ...]:
    """Return every earlier generation that still has topics, the oldest first.

    The promotion that left topics behind has recorded them. Earlier versions did not record them: then the present
    topology tells the names. A prefix never tells them, because other applications may share it.

    :param plan: plan of the last expansion. It is complete, or was rolled back and has the running generation as
        its source.
    :param existing: names of the topics of the cluster.
    """
    known = {plan.blue: tuple(m.source for m in plan.moves), **generations.left}
    in_use = _in_use(application, topology, generations, plan)
    found = []
    for number in range(1, generations.generation):
        name = green_application_id(application.application_id, number)
        topics = known.get(name) or tuple(blue_names(application, name).all_of(topology))
        left = tuple(sorted(t for t in topics if t in existing and t not in in_use))
        if name != generations.running and left:
            later = range(number + 1, generations.generation + 1)
            copies = (copy_group(application.application_id, n, in_place=i) for n in later for i in (False, True))
            found.append(Remains(name, number, left, (name, *copies)))
    return tuple(found)


def _in_use(application: Application, topology: Topology, generations: Generations, plan: Plan) -> set[str]:
    """Return the topics that the running generation owns, reads or writes, or that a bridge reads or writes."""
    return {
        *blue_names(application, generations.running).all_of(topology),
        *(m.target for m in plan.moves),
        *(m.source for m in plan.moves if plan.blue == generations.running),
        *(t for m in plan.bridges for t in (m.source, m.target)),
        *topology.inputs,
        *topology.outputs,
        *topology.global_topics,
        *generations.inputs.values(),
        *(o.topic for o in application.outputs),
    }
