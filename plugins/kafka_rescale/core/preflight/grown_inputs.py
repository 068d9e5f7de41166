"""Inputs that somebody has grown while a generation was tied to their old count.

A classic Kafka Streams application dies of that at its next rebalance; its internal topics still have the old
count, and its state is whole at its committed offsets. Old partitions then hold two layouts, with no mark between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from kafka_rescale.core.topology.topology import SubTopology, Topology


@dataclass(frozen=True)
class Reach:
    """How far into the partitions of an input things go; counts, not indexes.

    :param written: up to the last partition that has records.
    :param read: up to the last partition that the running generation has committed an offset of.
    :param recorded: partitions that it had when the watch last found every count in line; 0 if that isn't known.
    """

    written: int = 0
    read: int = 0
    recorded: int = 0


def grown_by_hand(
    topology: Topology,
    counts: Mapping[str, int],
    changelogs: Mapping[str, int],
    enforced: Collection[str],
    reach: Mapping[str, Reach],
    *,
    following: Collection[str] = (),
) -> dict[str, int]:
    """Return the count that the running generation knows of every input that has more partitions by now.

    A changelog has as many partitions as its sub-topology has tasks, whatever the program does. A repartition
    topic may have fewer because the program sets its count; then the input's last partitions are read as soon as
    they have records. That it was a growth is told by records in them that are not read, by the count that the
    watch has recorded, or by the file: KIP-878 asks for no records before the expansion is done.

    :param counts: present count per source topic, as the topology names it.
    :param changelogs: count per store's changelog, of those that exist.
    :param enforced: repartition topics that are declared to be set by the program; they say nothing of an input.
    :param reach: per input topic, as the topology names it.
    :param following: repartition topics that are known to follow from their sources.
    """
    found: dict[str, int] = {}
    for topic in topology.inputs:
        readers = [s for s in topology.subtopologies if topic in s.sources]
        tasks = {changelogs[store] for s in readers for store in s.stores if store in changelogs}
        derived = {
            r: n for s in readers for r, n in _derived(topology, s, topic, counts, reach) if r not in enforced
        }
        witnesses = tasks | set(derived.values())
        if len(witnesses) != 1:
            continue
        (known,) = witnesses
        told = bool(tasks) or _told(
            reach.get(topic, Reach()), known, is_declared=not set(following).isdisjoint(derived)
        )
        if told and known < counts.get(topic, 0):
            found[topic] = known
    return found


def _told(reach: Reach, known: int, *, is_declared: bool) -> bool:
    """Whether something tells a growth from a count that the program sets."""
    return reach.read <= known and (is_declared or reach.recorded == known or known < reach.written)


def _derived(
    topology: Topology, subtopology: SubTopology, topic: str, counts: Mapping[str, int], reach: Mapping[str, Reach]
) -> Iterator[tuple[str, int]]:
    """Yield repartition topics, with the count of the input that the sub-topology knows by them."""
    recorded = {source: reach.get(source, Reach()).recorded for source in subtopology.sources}
    for repartition in topology.repartitions.intersection(subtopology.sinks):
        readers = [s for s in topology.subtopologies if repartition in s.sources]
        # External topics that are read together with it decide its count.
        if repartition not in counts or not all(topology.repartitions.issuperset(s.sources) for s in readers):
            continue
        if len(recorded) == 1:
            yield repartition, counts[repartition]
        # The largest of several sources decides: only what was recorded of each tells which of them has grown, and
        # one that is not larger than that by now has changed nothing.
        elif all(recorded.values()) and max(recorded.values()) == counts[repartition] < counts.get(topic, 0):
            yield repartition, recorded[topic]
