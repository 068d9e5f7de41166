"""The left table that a subscription belongs to, and the partitioners of a foreign-key join's topics.

The left table's sub-topology writes the registration topic. Its records are partitioned as the right table is. The
right table's sub-topology keeps the subscriptions and writes the response topic. Its records go to the partition
of the left table that their subscription names.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.formats.subscription_wrapper import LeftTable
from kafka_rescale.core.partitioning.partitioners import gets_topic
from kafka_rescale.core.topology.topology import SubTopology, Topology, foreign_key_join, foreign_key_kind

Counts = Mapping[str, int]
"""Partitions by topic, as the topology names them."""


def registration_of(topology: Topology, store: str) -> tuple[str, ...]:
    """Return the registration topics that a subscription store may belong to; if the names tell, only one."""
    sources, internal = topology.subtopology_of(store).sources, topology.repartitions
    topics = tuple(t for t in sources if t in internal and foreign_key_kind(t) == "registration")
    named = tuple(
        t for t in topics if foreign_key_join(t) and store == f"{foreign_key_join(t)}-subscription-store"
    )
    return named or topics


def left_table_of_store(
    application: Application, topology: Topology, store: str, before: Counts, after: Counts
) -> LeftTable:
    """Return the left table whose partitions the values of a subscription store name.

    Several left tables count as one if they place every key alike: then any of them tells the partitions.

    :raises InvalidInput: there is no left table, or there are several that differ.
    """
    topics = registration_of(topology, store)
    tables = [left_table(application, topology, topic, before, after) for topic in topics]
    differ = {t if gets_topic(t.partitioner) else t.model_copy(update={"key_topic": ""}) for t in tables}
    if len(differ) != 1:
        raise InvalidInput(
            f"foreign-key subscription store {store!r}",
            found=f"{len(differ)} left tables that it could belong to "
            f"({', '.join(topics) or 'no registration topic'})",
            expected="one left table",
            remedy="Give each join a name by `TableJoined.as(…)`, so that its topics and its store are told apart."
            if topics
            else "Declare the store's real type: its sub-topology reads no registration topic.",
        )
    return tables[0]


def left_table(
    application: Application, topology: Topology, registration: str, before: Counts, after: Counts
) -> LeftTable:
    """Return the left table that writes a registration topic.

    :raises InvalidInput: its topics have different partitioners.
    """
    writer = next(s for s in topology.subtopologies if registration in s.sinks)
    return LeftTable(
        partitioner=partitioner_of_sources(application, topology, writer),
        key_topic=topology.own_sources(writer)[0],
        source_partitions=max(before[t] for t in writer.sources),
        target_partitions=max(after[t] for t in writer.sources),
    )


def partitioner_of_topic(application: Application, topology: Topology, topic: str) -> str:
    """Return the partitioner of an internal topic: as declared, or as a foreign-key join's table has it."""
    if foreign_key_kind(topic):
        reader = next(s for s in topology.subtopologies if topic in s.sources)
        return partitioner_of_sources(application, topology, reader)
    return application.repartition_partitioner(topic)


def key_topic_of(topology: Topology, topic: str) -> str:
    """Return the topic name that is passed to a user's partitioner for the keys of an internal topic."""
    if foreign_key_kind(topic):
        return topology.own_sources(next(s for s in topology.subtopologies if topic in s.sources))[0]
    return topic


def partitioner_of_sources(application: Application, topology: Topology, subtopology: SubTopology) -> str:
    """Return the one partitioner of the topics that a sub-topology's tasks share.

    :raises InvalidInput: they have different partitioners.
    """
    inputs = {i.topic: i.partitioner for i in application.inputs}
    sources = topology.own_sources(subtopology)
    found = {inputs.get(topic) or application.repartition_partitioner(topic) for topic in sources}
    if len(found) > 1:
        raise InvalidInput(
            f"sources {', '.join(sources)} of sub-topology {subtopology.id}",
            found=f"partitioners {', '.join(sorted(found))}",
            expected="one partitioner: the table of a foreign-key join is found by it",
            remedy="Correct the declared partitioners; a program that joins such topics would miss matches.",
        )
    return found.pop()
