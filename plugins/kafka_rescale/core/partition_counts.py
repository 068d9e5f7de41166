"""How many partitions Kafka Streams gives the topics between sub-topologies."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.topology import SubTopology, Topology, foreign_key_kind, own_sources


def partition_counts(
    topology: Topology, external: Mapping[str, int], enforced: Mapping[str, int]
) -> dict[str, int]:
    """Return the partition count of every repartition topic, as Kafka Streams would compute it.

    A repartition topic has the largest count among the sources of the sub-topology that writes it
    (``RepartitionTopics``), unless the program enforces one (KIP-221); then the topics that one sub-topology reads
    are made equal (``CopartitionedTopicsEnforcer``). ``Topology#describe()`` does not say which of them are
    joined, so all of them are taken to be. The topics of a foreign-key join are joined with the table that reads
    them (``KTableImpl``), hence never decide.

    :param external: partition count per external source topic.
    :param enforced: count per repartition topic that the program sets by ``withNumberOfPartitions``.
    """
    counts = {**external, **enforced}
    pending = {t for t in topology.repartitions if not foreign_key_kind(t)} - set(enforced)
    while pending:
        known_before = len(pending)
        for topic in sorted(pending):
            writers = [s for s in topology.subtopologies if topic in s.sinks]
            sources = [t for s in writers for t in own_sources(s)]
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
    for subtopology in topology.subtopologies:
        shared = _copartitioned_count(topology, subtopology, counts, enforced)
        for topic in topology.repartitions.intersection(subtopology.sources) - set(enforced):
            counts[topic] = shared
    return {t: counts[t] for t in topology.repartitions}


def _copartitioned_count(
    topology: Topology, subtopology: SubTopology, counts: Mapping[str, int], enforced: Mapping[str, int]
) -> int:
    """External topics decide, as Kafka Streams can't change them; then enforced counts; then the largest."""
    external = [t for t in subtopology.sources if t not in topology.repartitions]
    set_by_program = [t for t in subtopology.sources if t in enforced]
    return max(counts[t] for t in external or set_by_program or own_sources(subtopology))
