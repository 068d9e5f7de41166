"""A Kafka Streams topology as sub-topologies with their topics and stores, and the rules for partition counts.

Here, the names of repartition topics and stores have no application id in front, as ``Topology#describe()`` prints
them. So one topology holds for every generation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from kafka_rescale.core.errors import InvalidInput

Names = tuple[str, ...]

CHANGELOG_SUFFIX = "-changelog"
REPARTITION_SUFFIX = "-repartition"

_FOREIGN_KEY_TOPIC = re.compile(
    r"^(?P<join>.*)-subscription-(?P<named>registration|response)-topic$"
    r"|^(?:.*-)?KTABLE-FK-JOIN-SUBSCRIPTION-(?P<numbered>REGISTRATION|RESPONSE)-\d+-topic$"
)
"""The names that ``KTableImpl`` gives to topics of foreign-key joins, with and without ``TableJoined.as(…)``."""


@dataclass(frozen=True)
class SubTopology:
    """One sub-topology. Its tasks are called ``<id>_<partition>``.

    :param sources: the topics that it reads: external topics, and repartition topics without the application id.
    :param stores: names of the state stores that have a changelog of their own, without global stores.
    :param sinks: the topics that it writes: external topics, and repartition topics without the application id.
    :param source_tables: stores whose changelog is a source topic itself (``topology.optimization``).
    :param unlogged: stores that no topic can restore (``withLoggingDisabled()``).
    :param dynamic_sinks: names of sinks that choose their topic per record (``TopicNameExtractor``).
    """

    id: int
    sources: tuple[str, ...]
    stores: tuple[str, ...]
    sinks: tuple[str, ...]
    source_tables: tuple[str, ...] = ()
    unlogged: tuple[str, ...] = ()
    dynamic_sinks: tuple[str, ...] = ()

    @property
    def is_stateful(self) -> bool:
        """Whether it has state. Then the keys decide in which partition their state is."""
        return bool(self.all_stores)

    @property
    def all_stores(self) -> tuple[str, ...]:
        """Names of all state stores, with or without a changelog of their own, without global stores."""
        return (*self.stores, *self.without_changelog)

    @property
    def without_changelog(self) -> tuple[str, ...]:
        """Names of the stores that have no changelog of their own."""
        return (*self.source_tables, *self.unlogged)


@dataclass(frozen=True)
class Topology:
    """All sub-topologies of one application.

    ``external_topics`` have names like internal topics, but belong to the user. ``global_stores`` have no
    changelog: every instance reads all of their ``global_topics``. An expansion moves no record of a global topic.
    A running client would not read a partition that is added to such a topic.
    """

    subtopologies: tuple[SubTopology, ...]
    global_stores: tuple[str, ...] = ()
    global_topics: tuple[str, ...] = ()
    external_topics: frozenset[str] = frozenset()

    @property
    def repartitions(self) -> frozenset[str]:
        """The internal topics between sub-topologies: repartition topics, and topics of foreign-key joins."""
        written = {t for s in self.subtopologies for t in s.sinks}
        read = {t for s in self.subtopologies for t in s.sources}
        return frozenset(t for t in written & read if is_internal(t)) - self.external_topics

    @property
    def inputs(self) -> tuple[str, ...]:
        """The external topics that the application reads, in the order of their first use."""
        seen = dict.fromkeys(t for s in self.subtopologies for t in s.sources)
        return tuple(t for t in seen if t not in self.repartitions)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The external topics that the application writes, in the order of their first use."""
        seen = dict.fromkeys(t for s in self.subtopologies for t in s.sinks)
        return tuple(t for t in seen if t not in self.repartitions)

    @property
    def stores(self) -> tuple[str, ...]:
        """All stores that have a changelog of their own."""
        return tuple(store for s in self.subtopologies for store in s.stores)

    @property
    def without_changelog(self) -> tuple[str, ...]:
        """All stores that have no changelog of their own."""
        return tuple(store for s in self.subtopologies for store in s.without_changelog)

    def with_source_tables(self, names: Collection[str]) -> Topology:
        """Return the topology with some stores marked as tables whose source topic is their changelog."""
        return self._divided(names, lambda s, rest, taken: replace(s, stores=rest, source_tables=taken))

    def with_unlogged(self, names: Collection[str]) -> Topology:
        """Return the topology with some stores marked as stores without logging.

        ``Topology#describe()`` does not say which stores these are.
        """
        return self._divided(names, lambda s, rest, taken: replace(s, stores=rest, unlogged=taken))

    def _divided(
        self, names: Collection[str], change: Callable[[SubTopology, Names, Names], SubTopology]
    ) -> Topology:
        """Return the topology with changed sub-topologies.

        :param change: gets a sub-topology, those of its stores that are not in ``names``, and those that are.
        """
        parts = []
        for each in self.subtopologies:
            rest = tuple(store for store in each.stores if store not in names)
            taken = tuple(store for store in each.stores if store in names)
            parts.append(change(each, rest, taken))
        return replace(self, subtopologies=tuple(parts))

    def with_external(self, names: Collection[str]) -> Topology:
        """Return the topology with some topics marked as external, whatever their names are."""
        return replace(self, external_topics=frozenset(filter(is_internal, names)))

    def with_chosen(self, outputs: Collection[str]) -> Topology:
        """Return the topology with outputs as sinks of the sub-topologies whose sinks choose their topic.

        ``Topology#describe()`` does not name these topics, so each such sink may write every output that no other
        sink names.

        :param outputs: all outputs that the application file declares.
        """
        chosen = [topic for topic in outputs if topic not in self.outputs]
        return replace(
            self,
            subtopologies=tuple(
                replace(s, sinks=tuple(dict.fromkeys((*s.sinks, *chosen)))) if s.dynamic_sinks else s
                for s in self.subtopologies
            ),
        )

    def own_sources(self, subtopology: SubTopology) -> list[str]:
        """Return the sources of a sub-topology, without topics of foreign-key joins.

        The counts of these topics follow the other sources.
        """
        joins = {t for t in self.repartitions if foreign_key_kind(t)}
        return [t for t in subtopology.sources if t not in joins]

    def subtopology_of(self, store: str) -> SubTopology:
        """Return the sub-topology that owns a store."""
        return next(s for s in self.subtopologies if store in s.stores)

    def source_of(self, store: str) -> str:
        """Return the first topic that a store's sub-topology reads. Each partition of the topic has a task."""
        return next(self.own_sources(s)[0] for s in self.subtopologies if store in {*s.stores, *s.source_tables})

    def upstream_of(self, topic: str) -> tuple[str, ...]:
        """Return every topic whose records reach a topic through the application, directly or by other topics."""
        upstream: dict[str, None] = {}
        pending = [topic]
        while pending:
            written = pending.pop()
            read = [t for s in self.subtopologies if written in s.sinks for t in s.sources if t not in upstream]
            upstream.update(dict.fromkeys(read))
            pending += read
        return tuple(upstream)

    def downstream_first(self) -> tuple[SubTopology, ...]:
        """Return the sub-topologies, the most downstream first. If several are equal, the higher id comes first.

        The two tables of a foreign-key join feed each other. An expansion starts nothing between its stages, so
        either order of the two tables is right. The subscription topics decide the order, unless they make a
        circle themselves.

        :raises InvalidInput: the sub-topologies feed each other in a circle of repartition topics.
        """
        subscribed = self._feeds(lambda topic: foreign_key_kind(topic) != "response")
        below = self._feeds(lambda topic: not foreign_key_kind(topic))
        by_id = {s.id: s for s in self.subtopologies}
        ordered: list[SubTopology] = []
        while below:
            possible = [i for i, after in below.items() if not after & below.keys()]
            free = max(
                (i for i in possible if not subscribed[i] & below.keys()), default=max(possible, default=None)
            )
            if free is None:
                raise InvalidInput(
                    "topology",
                    found=f"sub-topologies {sorted(below)} that feed themselves or each other by repartition "
                    "topics",
                    expected="sub-topologies of which one is the most downstream",
                    remedy="Such a circle can't be expanded. Cut it, for example into two applications.",
                )
            ordered.append(by_id[free])
            del below[free]
        return tuple(ordered)

    def _feeds(self, by: Callable[[str], bool]) -> dict[int, set[int]]:
        """Return by sub-topology the ids of those that it feeds through internal topics that ``by`` accepts."""
        readers = {t: {s.id for s in self.subtopologies if t in s.sources} for t in self.repartitions if by(t)}
        return {
            s.id: {r for t in s.sinks for r in readers.get(t, ()) if r != s.id or not foreign_key_kind(t)}
            for s in self.subtopologies
        }


def foreign_key_kind(topic: str) -> str:
    """Return ``registration`` or ``response`` for a topic of a foreign-key join, else an empty text."""
    found = _FOREIGN_KEY_TOPIC.match(topic)
    return (found["named"] or found["numbered"]).lower() if found else ""


def foreign_key_join(topic: str) -> str:
    """Return the name that the program gave a foreign-key join, from one of its topics. Empty without a name."""
    found = _FOREIGN_KEY_TOPIC.match(topic)
    return (found["join"] or "") if found else ""


def is_internal(topic: str) -> bool:
    """Return whether a topic's name has the form that Kafka Streams gives to topics between sub-topologies."""
    return topic.endswith(REPARTITION_SUFFIX) or bool(foreign_key_kind(topic))


def changelog_topic(application_id: str, store: str) -> str:
    """Return ``<application.id>-<store>-changelog`` (``ProcessorStateManager.storeChangelogTopic``)."""
    return f"{application_id}-{store}{CHANGELOG_SUFFIX}"


def internal_topic(application_id: str, repartition: str) -> str:
    """Return the full name of a repartition topic."""
    return f"{application_id}-{repartition}"
