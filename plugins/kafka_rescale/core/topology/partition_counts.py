"""The partition counts that Kafka Streams gives to the topics between sub-topologies."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.topology.topology import SubTopology, Topology, foreign_key_kind


def partition_counts(
    topology: Topology, external: Mapping[str, int], enforced: Mapping[str, int]
) -> dict[str, int]:
    """Return the partition count of every repartition topic, as Kafka Streams would compute it.

    First, a repartition topic gets the largest count among the sources of the sub-topology that writes the topic
    (``RepartitionTopics``), unless the program enforces a count (KIP-221). Then Kafka Streams makes the counts of
    joined topics equal (``CopartitionedTopicsEnforcer``). ``Topology#describe()`` does not say which topics are
    joined. So this function takes all topics that one sub-topology reads as joined. The topics of a foreign-key
    join are joined with the table that reads them (``KTableImpl``). This function assumes that they don't decide a
    count. If that is not certain, ``possible_counts`` returns more than one count.

    :param external: partition count per external source topic.
    :param enforced: count per repartition topic for which the program sets it by ``withNumberOfPartitions``.
    """
    return _joined(topology, _derived(topology, external, enforced), enforced)


def possible_counts(
    topology: Topology, external: Mapping[str, int], enforced: Mapping[str, int], joined: Collection[str] = ()
) -> dict[str, set[int]]:
    """Return every count that Kafka Streams may compute for a repartition topic, as far as the topology tells.

    Merged topics (``KStream#merge``) keep their derived counts, while joined topics get equal counts. The topics
    of foreign-key joins are among the sources of the sub-topology that reads them. The order of a hash map decides
    whether they already have a count when Kafka Streams compares the counts of these sources.

    :param joined: repartition topics that are known to be joined with another source of their sub-topology.
    """
    narrow, wide = counts_if_merged(topology, external, enforced)
    together = [_joined(topology, narrow, enforced), _joined(topology, wide, enforced)]
    return {
        t: {c[t] for c in together} | (set() if t in joined else {narrow[t], wide[t]})
        for t in topology.repartitions
        if not foreign_key_kind(t)
    }


def counts_if_merged(
    topology: Topology, external: Mapping[str, int], enforced: Mapping[str, int]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the counts for the case that no topics are joined, computed in two ways.

    The first counts leave out the topics of foreign-key joins. The second counts include them among the sources.
    """
    return _derived(topology, external, enforced), _derived_of_all_sources(topology, {**external, **enforced})


def _derived(topology: Topology, external: Mapping[str, int], enforced: Mapping[str, int]) -> dict[str, int]:
    counts = {**external, **enforced}
    pending = {t for t in topology.repartitions if not foreign_key_kind(t)} - set(enforced)
    while pending:
        known_before = len(pending)
        for topic in sorted(pending):
            writers = [s for s in topology.subtopologies if topic in s.sinks]
            sources = [t for s in writers for t in topology.own_sources(s)]
            if all(t in counts for t in sources):
                counts[topic] = max(counts[t] for t in sources)
                pending.discard(topic)
        if len(pending) == known_before:
            raise InvalidInput(
                "topology",
                found=f"no partition count for what feeds {', '.join(sorted(pending))}",
                expected="a count for every source topic",
                remedy="Declare every input topic of the topology in the application file.",
            )
    return counts


def _derived_of_all_sources(topology: Topology, decided: Mapping[str, int]) -> dict[str, int]:
    """Return the largest counts that the topics of foreign-key joins could lead to.

    Such topics can feed each other, so this function repeats its steps until no count changes.
    """
    counts = {**dict.fromkeys(topology.repartitions, 0), **decided}
    before: dict[str, int] = {}
    while counts != before:
        before = dict(counts)
        for topic in topology.repartitions - set(decided):
            writers = [s for s in topology.subtopologies if topic in s.sinks]
            counts[topic] = max(counts[t] for s in writers for t in s.sources)
    return counts


def _joined(topology: Topology, derived: Mapping[str, int], enforced: Mapping[str, int]) -> dict[str, int]:
    counts = dict(derived)
    for subtopology in topology.subtopologies:
        shared = _copartitioned_count(topology, subtopology, counts, enforced)
        for topic in topology.repartitions.intersection(subtopology.sources) - set(enforced):
            counts[topic] = shared
    return {t: counts[t] for t in topology.repartitions}


def _copartitioned_count(
    topology: Topology, subtopology: SubTopology, counts: Mapping[str, int], enforced: Mapping[str, int]
) -> int:
    """Return the count of joined topics: that of the external topics, else an enforced one, else the largest."""
    external = [t for t in subtopology.sources if t not in topology.repartitions]
    set_by_program = [t for t in subtopology.sources if t in enforced]
    return max(counts[t] for t in external or set_by_program or topology.own_sources(subtopology))
