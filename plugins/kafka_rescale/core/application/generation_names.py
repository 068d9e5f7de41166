"""The names of one generation's internal topics on the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.topology.topology import CHANGELOG_SUFFIX, REPARTITION_SUFFIX, Topology, internal_topic


@dataclass(frozen=True)
class GenerationNames:
    """Full names of the topics of stores and repartitions; callers use the names of blue's topology.

    :param prefix: ``application.id``, or the prefix by which ``__internal.override.topic.prefix__`` replaces it.
    :param renamed: this generation's name of a store or repartition, if it differs from blue's. If a store and a
        repartition have the same name, the names have the suffix of the topic that is meant.
    """

    prefix: str
    renamed: Mapping[str, str] = field(default_factory=dict)

    def changelog(self, store: str) -> str:
        """Return the changelog of a store."""
        return internal_topic(self.prefix, self._named(f"{store}{CHANGELOG_SUFFIX}", CHANGELOG_SUFFIX))

    def repartition(self, topic: str) -> str:
        """Return the full name of a topic between sub-topologies.

        :param topic: as ``Topology#describe()`` prints it.
        """
        return internal_topic(self.prefix, self._named(topic, REPARTITION_SUFFIX))

    def _named(self, topic: str, suffix: str) -> str:
        name = topic.removesuffix(suffix)
        return self.renamed.get(topic) or self.renamed.get(name, name) + topic[len(name) :]

    def all_of(self, topology: Topology) -> list[str]:
        """Return every internal topic."""
        repartitions = [self.repartition(t) for t in sorted(topology.repartitions)]
        return repartitions + [self.changelog(store) for store in topology.stores]


def blue_names(application: Application, blue: str) -> GenerationNames:
    """Return the names of the running generation, as the topology has them.

    :param blue: its ``application.id``.
    """
    return GenerationNames(application.internal_prefix(blue))


def green_names(application: Application, green: str) -> GenerationNames:
    """Return the names of the generation to build. The indexes in generated names may differ from blue's.

    :param green: its ``application.id``.
    """
    return GenerationNames(application.internal_prefix(green), application.green_names)
