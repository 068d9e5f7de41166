"""Streams grouped by key, with the methods of ``KGroupedStream``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kafka_rescale.core.pipeline.aggregates import Aggregation, StreamAggregate, counting, reducing
from kafka_rescale.core.pipeline.graph import Graph, GraphNode
from kafka_rescale.core.pipeline.nodes import Kind, Node, Nodes, Supplier
from kafka_rescale.core.pipeline.processor import Processor, TaskContext
from kafka_rescale.core.pipeline.repartition import repartition_node
from kafka_rescale.core.pipeline.serdes import LONG, Serde
from kafka_rescale.core.pipeline.stores.table_stores import StoreSerdes
from kafka_rescale.core.pipeline.table_logic import MaterializedTable
from kafka_rescale.core.pipeline.tables import KTable
from kafka_rescale.core.pipeline.task import StoreDefinition
from kafka_rescale.core.pipeline.windowed import AGGREGATE, REDUCE, WindowedKStream
from kafka_rescale.core.pipeline.windows import SessionWindows, TimeWindows


@dataclass
class KGroupedStream:
    """A stream grouped by key. Its methods aggregate it.

    A parameter ``store`` is the name of the state store. The name of its changelog follows from it. Without
    ``store``, the name is generated.

    :param window_bytes: number of bytes at the end of each key that did not decide the partition of its record.
    """

    graph: Graph
    node: GraphNode
    key: Serde | None
    value: Serde | None
    sources: frozenset[str]
    repartition_required: bool
    repartition_name: str = ""
    window_bytes: int = 0
    _shared: GraphNode | None = field(default=None, init=False)

    def count(self, *, store: str = "", value: Serde = LONG, name: str = "") -> KTable:
        """Count the records of every key."""
        return self._aggregated(AGGREGATE, counting(), store, value, name)

    def reduce(
        self, reducer: Callable[[Any, Any], Any], *, store: str = "", value: Serde | None = None, name: str = ""
    ) -> KTable:
        """Combine the values of every key by ``reducer(aggregate, value)``.

        The first value of a key becomes its first aggregate.
        """
        return self._aggregated(REDUCE, reducing(reducer), store, value or self.value, name)

    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        *,
        store: str = "",
        value: Serde | None = None,
        name: str = "",
    ) -> KTable:
        """Add the values of every key to ``initializer()`` by ``aggregator(key, value, aggregate)``.

        :param aggregator: returns the new aggregate. It may change the aggregate that it gets and return this one,
            also in windows.
        :param value: the serde of the aggregates.
        """
        return self._aggregated(AGGREGATE, Aggregation(initializer, aggregator), store, value, name)

    def windowed_by(self, windows: TimeWindows | SessionWindows) -> WindowedKStream:
        """Divide the stream into windows of time or sessions. The methods of the result aggregate the stream."""
        return WindowedKStream(self, windows)

    def _aggregated(self, prefix: str, how: Aggregation, store: str, value: Serde | None, name: str) -> KTable:
        store, kind = store or self.graph.new_store_name(prefix), "timestamped-key-value"
        definition = StoreDefinition(store, kind, window_bytes=self.window_bytes)
        name = self.graph.new_name(prefix, name)
        logic = StreamTable(definition, StoreSerdes(definition.name, self.key, value), how)
        node, sources = self.add_aggregation(name, definition, logic.processor)
        return KTable(self.graph, node, self.key, value, sources, logic, self.window_bytes)

    def add_aggregation(
        self, name: str, store: StoreDefinition, supplier: Supplier
    ) -> tuple[GraphNode, frozenset[str]]:
        """Add an aggregation with its store. If the keys may have been changed, put a repartition topic before it.

        As in ``GroupedStreamAggregateBuilder``, all aggregations of this stream share the repartition topic if the
        user has named it. Otherwise, each aggregation has its own repartition topic, with the name of its store.

        :returns: the node of the aggregation, and the sources of its sub-topology.
        """
        parent, sources = self.node, self.sources
        if self.repartition_required:
            made = repartition_node(self.graph, self.repartition_name or store.name, self.key, self.value)
            if self._shared is None or not self.repartition_name:
                self._shared = made
            self.graph.add(self._shared, parent)
            parent, sources = self._shared, frozenset({made.name})

        def write(nodes: Nodes, parents: tuple[str, ...]) -> None:
            nodes.add(Node(name, Kind.PROCESSOR, supplier, parents))
            nodes.add_store(store, (name,))

        node = GraphNode(name, write)
        self.graph.add(node, parent)
        return node, sources


class StreamTable(MaterializedTable):
    """The table that an aggregation without windows makes. It always has a store."""

    def __init__(self, store: StoreDefinition, serdes: StoreSerdes, how: Aggregation) -> None:
        super().__init__(store, serdes)
        self._how = how

    def processor(self, context: TaskContext) -> Processor:
        """Return the aggregation of a task."""
        return StreamAggregate(context, self.open(context), self._how, self.sends_old)
