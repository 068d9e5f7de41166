"""Inputs that somebody has grown while a generation was tied to their old count.

A classic Kafka Streams application dies of that at its next rebalance; its internal topics still have the old
count, and its state is whole at its committed offsets. Old partitions then hold two layouts, with no mark between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from kafka_rescale.core.topology import SubTopology, Topology


@dataclass(frozen=True)
class Reach:
    """How far into the partitions of an input things go; counts, not indexes.

    :param written: up to the last partition that has records.
    :param read: up to the last partition that the running generation has committed an offset of.
    """

    written: int
    read: int


def grown_by_hand(
    topology: Topology,
    counts: Mapping[str, int],
    changelogs: Mapping[str, int],
    enforced: Collection[str],
    reach: Mapping[str, Reach],
) -> dict[str, int]:
    """Return the count that the running generation knows of every input that has more partitions by now.

    A changelog has as many partitions as its sub-topology has tasks, whatever the program does. A repartition
    topic may have fewer because the program sets its count; then the input's last partitions have been read.

    :param counts: present count per source topic, as the topology names it.
    :param changelogs: count per store's changelog, of those that exist.
    :param enforced: repartition topics that are declared to be set by the program; they say nothing of an input.
    """
    found: dict[str, int] = {}
    for topic in topology.inputs:
        readers = [s for s in topology.subtopologies if topic in s.sources]
        tasks = {changelogs[store] for s in readers for store in s.stores if store in changelogs}
        derived = {n for s in readers for n in _derived(topology, s, counts, enforced)}
        known = min(tasks | derived, default=0)
        told = bool(tasks) or (topic in reach and reach[topic].read <= known < reach[topic].written)
        if len(tasks | derived) == 1 and told and known < counts.get(topic, 0):
            found[topic] = known
    return found


def _derived(
    topology: Topology, subtopology: SubTopology, counts: Mapping[str, int], enforced: Collection[str]
) -> Iterator[int]:
    """Yield the counts of repartition topics that Kafka Streams derives from the sub-topology's only input."""
    derived = topology.repartitions.intersection(subtopology.sinks) - set(enforced)
    for topic in derived if len(subtopology.sources) == 1 else ():
        readers = [s for s in topology.subtopologies if topic in s.sources]
        # External topics that are read together with it decide its count.
        if topic in counts and all(topology.repartitions.issuperset(s.sources) for s in readers):
            yield counts[topic]
