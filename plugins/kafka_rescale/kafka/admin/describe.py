"""Reads, in one go, everything on the cluster that preflight and plan look at."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_rescale.core.application.generation_names import blue_names
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.cluster import ClusterDescription, TopicPartition
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin


def topics_of(
    application: Application, topology: Topology, blue: str, renamed: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the inputs, the outputs and the internal topics of a generation, each once.

    :param blue: ``application.id`` of the generation.
    :param renamed: by input that was repartitioned, the topic that the generation reads instead.
    """
    inputs = [*(i.topic for i in application.inputs), *topology.inputs]
    external = [renamed.get(topic, topic) for topic in inputs]
    external += [*(o.topic for o in application.outputs), *topology.outputs]
    # A store that is declared to have no changelog of its own must not have one: preflight looks for it.
    names = blue_names(application, blue)
    denied = map(names.changelog, topology.without_changelog)
    return tuple(dict.fromkeys([*external, *names.all_of(topology), *denied]))


def describe(
    admin: ClusterAdmin, application: Application, topology: Topology, generations: Generations | None
) -> ClusterDescription:
    """Return a description of the topics and the group of the running generation.

    :param generations: tells which generation is running. None: the first generation is running.
    :raises Outage: a broker doesn't answer in time.
    """
    blue = generations.running if generations else application.application_id
    names = topics_of(application, topology, blue, generations.inputs if generations else {})
    topics = admin.describe_topics(names)
    return ClusterDescription(
        cluster_id=admin.cluster_id(),
        brokers=admin.live_brokers(),
        topics=topics,
        group=admin.describe_group(blue),
        committed=_flat(admin.committed(blue)),
        begins=_flat(admin.begin_offsets(topics)),
        ends=_flat(admin.end_offsets(topics)),
    )


def _flat(offsets: PartitionOffsets) -> dict[TopicPartition, int]:
    return {(topic, p): offset for topic, by_partition in offsets.items() for p, offset in by_partition.items()}
