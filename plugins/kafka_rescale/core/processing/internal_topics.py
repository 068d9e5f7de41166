"""The internal topics of a pipeline as Kafka Streams would create them, and the order of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka_rescale.core.formats.changelog_formats import FORMATS
from kafka_rescale.core.pipeline.task import StoreDefinition, SubTopology
from kafka_rescale.core.topology.topology import Topology, internal_topic

ADDITIONAL_RETENTION_MS = 24 * 3600 * 1000
"""``windowstore.changelog.additional.retention.ms``."""

KEEP_ALL = {"retention.ms": "-1"}
"""Configs for a backfill: brokers go by the old times of its records, and would delete what is just written."""

_REPARTITION = {
    "cleanup.policy": "delete",
    "segment.bytes": "52428800",
    "retention.ms": "-1",
    "message.timestamp.type": "CreateTime",
}


@dataclass(frozen=True)
class InternalTopic:
    """A topic that belongs to the application.

    :param name: full.
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

    :param counts: partitions of the repartition topics, without the application id.
    :param tasks: changelog partitions by sub-topology: one per task.
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
    """Return the ids of the sub-topologies by level; the first level has those that no other one feeds.

    :raises InvalidInput: they feed each other in a circle.
    """
    level: dict[int, int] = {}
    for sub_topology in reversed(topology.downstream_first()):
        read = topology.repartitions & set(sub_topology.sources)
        writers = [s.id for s in topology.subtopologies if read & set(s.sinks) and s.id in level]
        level[sub_topology.id] = 1 + max((level[each] for each in writers), default=0)
    return tuple(
        tuple(sorted(i for i, at in level.items() if at == number)) for number in sorted(set(level.values()))
    )
