"""The internal topics of a pipeline, as Kafka Streams would create them, and the order of its sub-topologies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka_rescale.core.formats.changelog_formats import FORMATS
from kafka_rescale.core.pipeline.task import StoreDefinition, SubTopology
from kafka_rescale.core.topology.topology import Topology, internal_topic

ADDITIONAL_RETENTION_MS = 24 * 3600 * 1000
"""``windowstore.changelog.additional.retention.ms``."""

KEEP_ALL = {"retention.ms": "-1"}
"""Configs for a backfill: the times of its records are old, so brokers with a limit would delete them at once."""

_REPARTITION = {
    "cleanup.policy": "delete",
    "segment.bytes": "52428800",
    "retention.ms": "-1",
    "message.timestamp.type": "CreateTime",
}


def changelogs_of(application_id: str, part: SubTopology) -> list[str]:
    """Return the full names of the changelogs of a sub-topology."""
    return [f"{application_id}-{store.changelog_topic}" for store in part.stores if store.is_logged]


@dataclass(frozen=True)
class InternalTopic:
    """A topic that belongs to the application.

    :param name: the full name.
    """

    name: str
    partitions: int
    configs: Mapping[str, str]


def internal_topics(
    application_id: str,
    topology: Topology,
    sub_topologies: Iterable[SubTopology],
    counts: Mapping[str, int],
    tasks: Mapping[int, int],
) -> list[InternalTopic]:
    """Return the repartition topics and changelogs.

    :param counts: by repartition topic (without the application id), its number of partitions.
    :param tasks: by sub-topology, the number of its tasks. A changelog has a partition for each task.
    """
    repartitions = [
        InternalTopic(internal_topic(application_id, topic), counts[topic], _REPARTITION)
        for topic in sorted(topology.repartitions)
    ]
    changelogs = [
        InternalTopic(f"{application_id}-{store.changelog_topic}", tasks[part.id], changelog_configs(store))
        for part in sub_topologies
        for store in part.stores
        if store.is_logged
    ]
    return [*repartitions, *changelogs]


def changelog_configs(store: StoreDefinition) -> dict[str, str]:
    """Return the configs of a store's changelog (``WindowedChangelogTopicConfig`` and its siblings)."""
    policies = FORMATS[store.kind].cleanup_policies[0]
    created = {"cleanup.policy": ",".join(policies), "message.timestamp.type": "CreateTime"}
    if "delete" not in policies or store.retention_ms is None:
        return created
    return {**created, "retention.ms": str(store.retention_ms + ADDITIONAL_RETENTION_MS)}


def levels(topology: Topology) -> tuple[tuple[int, ...], ...]:
    """Return the ids of the sub-topologies by level. The first level has those that no other sub-topology feeds.

    :raises InvalidInput: sub-topologies feed each other in a circle.
    """
    level: dict[int, int] = {}
    for sub_topology in reversed(topology.downstream_first()):
        read = topology.repartitions & set(sub_topology.sources)
        writers = [s.id for s in topology.subtopologies if read & set(s.sinks) and s.id in level]
        level[sub_topology.id] = 1 + max((level[each] for each in writers), default=0)
    return tuple(
        tuple(sorted(i for i, at in level.items() if at == number)) for number in sorted(set(level.values()))
    )
