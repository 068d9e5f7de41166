"""The topics that stand for an input of the topology: the topic that is read, and the bridge's other topic."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.values import Value


class CarriedInput(Value):
    """An input that is read under another name than in the topology, or that has a bridge now or soon.

    :param declared: the name in the topology.
    :param read: the topic that the running generation reads.
    :param old: the topic that the bridge reads. Empty if there is no bridge, or if the bridge has ended.
    :param new: the topic that the bridge writes.
    :param counts: the partition counts of ``old`` and of ``new``.
    """

    declared: str
    read: str
    old: str = ""
    new: str = ""
    counts: tuple[int, int] = (0, 0)


def carried_inputs(control: ControlState, inputs: Iterable[str]) -> tuple[CarriedInput, ...]:
    """Return the inputs that the topology alone would show wrongly."""
    renamed = control.generations.inputs if control.generations else {}
    journal = control.bridging
    ended = journal is not None and bool(Bridge.of(journal.plan, control.bridge_of(journal)).ended_at_ms)
    is_current = journal is not None and (journal.in_progress or journal.is_promoted) and not ended
    moves = journal.plan.bridges if journal is not None and is_current else ()
    declared = {i.topic: i.declared for i in journal.plan.inputs} if journal is not None else {}
    by_input = {declared.get(m.source, m.source): m for m in moves}
    found = []
    for name in inputs:
        read, move = renamed.get(name, name), by_input.get(name)
        if move is not None:
            counts = (move.source_partitions, move.target_partitions)
            found.append(CarriedInput(declared=name, read=read, old=move.source, new=move.target, counts=counts))
        elif read != name:
            found.append(CarriedInput(declared=name, read=read))
    return tuple(found)
