"""Streams of records, in the words of ``KStream``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kafka_rescale.core.pipeline import stateless
from kafka_rescale.core.pipeline.graph import Graph, GraphNode
from kafka_rescale.core.pipeline.grouped import KGroupedStream
from kafka_rescale.core.pipeline.nodes import Kind, Node, Nodes, SinkTarget, Supplier
from kafka_rescale.core.pipeline.repartition import repartitioned
from kafka_rescale.core.pipeline.serdes import Serde


@dataclass(frozen=True)
class KStream:
    """A stream of records; every method adds an operation to the pipeline and returns what comes out of it.

    Every ``name`` is the operation's name in ``describe()``; one is generated where it is left out.

    :param key: how keys are written where they have to be; ``None`` after an operation that may have changed them.
    """

    graph: Graph
    node: GraphNode
    key: Serde | None
    value: Serde | None
    sources: frozenset[str]
    repartition_required: bool = False

    def filter(self, predicate: Callable[[Any, Any], object], *, name: str = "") -> KStream:
        """Keep the records for which ``predicate(key, value)`` is true."""
        name = self.graph.new_name("KSTREAM-FILTER-", name)
        return self._then(name, lambda context: stateless.Filter(predicate))

    def map_values(
        self, mapper: Callable[..., Any], *, with_key: bool = False, value: Serde | None = None, name: str = ""
    ) -> KStream:
        """Replace every value by ``mapper(value)``, or by ``mapper(key, value)`` if ``with_key``.

        :param value: how the new values are written, unless the operation that writes them says so.
        """
        name = self.graph.new_name("KSTREAM-MAPVALUES-", name)
        with_both = mapper if with_key else lambda key, value: mapper(value)
        return replace(self._then(name, lambda context: stateless.MapValues(with_both)), value=value)

    def select_key(
        self, mapper: Callable[[Any, Any], Any], *, key: Serde | None = None, name: str = ""
    ) -> KStream:
        """Give every record the key ``mapper(key, value)``; what needs them by key repartitions them then.

        :param key: how the new keys are written, unless the operation that writes them says so.
        """
        name = self.graph.new_name("KSTREAM-KEY-SELECT-", name)
        stream = self._then(name, lambda context: stateless.SelectKey(mapper))
        return replace(stream, key=key, repartition_required=True)

    def repartition(
        self,
        *,
        name: str = "",
        key: Serde | None = None,
        value: Serde | None = None,
        partitions: int | None = None,
    ) -> KStream:
        """Write the stream to an internal topic and go on behind it.

        :param name: of the topic ``<name>-repartition``.
        :param partitions: of that topic; as many as the inputs have where it is left out.
        """
        name = name or self.graph.new_name("KSTREAM-REPARTITION-")
        keys, values = key or self.key, value or self.value
        node = repartitioned(self.graph, self.node, name, keys, values, partitions)
        return KStream(self.graph, node, keys, values, frozenset({node.name}))

    def group_by_key(
        self, *, name: str = "", key: Serde | None = None, value: Serde | None = None
    ) -> KGroupedStream:
        """Group the records by their key, behind a repartition topic if the keys may have been changed.

        :param name: of that repartition topic ``<name>-repartition``; it is named like the store if left out.
        """
        return KGroupedStream(
            self.graph,
            self.node,
            key or self.key,
            value or self.value,
            self.sources,
            self.repartition_required,
            repartition_name=name,
        )

    def to(self, topic: str, *, key: Serde | None = None, value: Serde | None = None, name: str = "") -> None:
        """Write the stream to an output topic."""
        name = self.graph.new_name("KSTREAM-SINK-", name)
        target = SinkTarget(topic, key or self.key, value or self.value)
        self.graph.add(GraphNode(name, partial(_write_sink, name, target)), self.node)

    def _then(self, name: str, supplier: Supplier) -> KStream:
        node = GraphNode(name, partial(write_processor, name, supplier))
        self.graph.add(node, self.node)
        return replace(self, node=node)


def write_processor(name: str, supplier: Supplier, nodes: Nodes, parents: tuple[str, ...]) -> None:
    """Add a processor behind its parents."""
    nodes.add(Node(name, Kind.PROCESSOR, supplier, parents))


def _write_sink(name: str, target: SinkTarget, nodes: Nodes, parents: tuple[str, ...]) -> None:
    nodes.add(Node(name, Kind.SINK, lambda context: stateless.Sink(context, target), parents, (target.topic,)))
