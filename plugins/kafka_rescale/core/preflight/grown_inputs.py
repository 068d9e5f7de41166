"""Inputs that were grown by hand while a generation was tied to their old count.

A classic Kafka Streams application dies of that at its next rebalance. Its internal topics still have the old
count, and its state is whole at its committed offsets. The old partitions of the input then hold records of two
layouts, the old count's and the new one's, without a mark between them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from kafka_rescale.core.topology.topology import SubTopology, Topology


@dataclass(frozen=True)
class Reach:
    """How many partitions of an input are in use, as counts.

    :param written: number of partitions up to the last one that has records.
    :param read: number up to the last one for which the running generation has committed an offset.
    :param recorded: number that the input had when the watch last found that all counts agree; 0 if that isn't
        known.
    """

    written: int = 0
    read: int = 0
    recorded: int = 0


@dataclass(frozen=True)
class Growth:
    """An input that has grown while the running generation was tied to its old count.

    :param known: the count that the running generation knows.
    :param unproven: repartition topics whose counts are the only evidence, although the program may set them.
        Empty if a changelog shows the growth, or if one of the counts is known to follow from its sources.
    """

    known: int
    unproven: frozenset[str] = frozenset()


def growths(
    topology: Topology,
    counts: Mapping[str, int],
    changelogs: Mapping[str, int],
    enforced: Collection[str],
    reach: Mapping[str, Reach],
    *,
    following: Collection[str] = (),
) -> dict[str, Growth]:
    """Return the growth of every input that has more partitions by now than the running generation knows.

    A changelog has as many partitions as its sub-topology has tasks, whatever the program does. So its count is
    evidence by itself. A repartition topic may have fewer partitions than the input for another reason: the
    program sets its count. Then the running generation reads the input's last partitions as soon as they have
    records.

    So a repartition topic shows a growth only if the generation has read none of these partitions, and by one of
    three signs: these partitions have records, the watch has recorded the old count, or the file says that the
    count is derived. Records are not the only sign, because KIP-878 allows none before the expansion is done.

    :param counts: present count per source topic, by its name in the topology.
    :param changelogs: count per store's changelog, if it exists.
    :param enforced: repartition topics whose counts the program sets, as the file declares. Their counts tell
        nothing about an input.
    :param reach: per input topic, by its name in the topology.
    :param following: repartition topics whose counts are known to follow from their sources.
    """
    found: dict[str, Growth] = {}
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
        is_declared = not set(following).isdisjoint(derived)
        told = bool(tasks) or _told(reach.get(topic, Reach()), known, is_declared=is_declared)
        if told and known < counts.get(topic, 0):
            unproven = frozenset[str]() if tasks or is_declared else frozenset(derived)
            found[topic] = Growth(known, unproven)
    return found


def _told(reach: Reach, known: int, *, is_declared: bool) -> bool:
    """Whether there is evidence for a growth, as opposed to a count that the program sets."""
    return reach.read <= known and (is_declared or reach.recorded == known or known < reach.written)


def _derived(
    topology: Topology, subtopology: SubTopology, topic: str, counts: Mapping[str, int], reach: Mapping[str, Reach]
) -> Iterator[tuple[str, int]]:
    """Yield repartition topics, each with the input's count that the sub-topology knows, as the topic shows it."""
    recorded = {source: reach.get(source, Reach()).recorded for source in subtopology.sources}
    for repartition in topology.repartitions.intersection(subtopology.sinks):
        readers = [s for s in topology.subtopologies if repartition in s.sources]
        # External topics that are read together with the repartition topic decide its count, so it shows nothing.
        if repartition not in counts or not all(topology.repartitions.issuperset(s.sources) for s in readers):
            continue
        if len(recorded) == 1:
            yield repartition, counts[repartition]
        # The largest of several sources decides. Only the recorded counts tell which source has grown. A source
        # that is not larger than its recorded count has changed nothing.
        elif all(recorded.values()) and max(recorded.values()) == counts[repartition] < counts.get(topic, 0):
            yield repartition, recorded[topic]
