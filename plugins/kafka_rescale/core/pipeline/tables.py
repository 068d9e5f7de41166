"""Tables, with the methods of ``KTable``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka_rescale.core.pipeline.changes import Compute, ToStream
from kafka_rescale.core.pipeline.graph import Graph, GraphNode
from kafka_rescale.core.pipeline.nodes import Kind, Node, Nodes
from kafka_rescale.core.pipeline.serdes import Serde
from kafka_rescale.core.pipeline.stores.table_stores import StoreSerdes
from kafka_rescale.core.pipeline.table_joins import JoinedTable, Joiner, Side
from kafka_rescale.core.pipeline.table_logic import ComputedTable, MaterializedTable, TableLogic
from kafka_rescale.core.pipeline.task import StoreDefinition

if TYPE_CHECKING:
    from kafka_rescale.core.pipeline.streams import KStream


@dataclass(frozen=True)
class KTable:
    """A table: the latest value of every key. Every method adds an operation to the pipeline.

    A parameter ``store`` is the name of the state store. The name of its changelog follows from it. Without
    ``store``, the result of the method has no store.

    :param window_bytes: number of bytes at the end of each key that did not decide the partition of its record:
        the bytes of the window.
    """

    graph: Graph
    node: GraphNode
    key: Serde | None
    value: Serde | None
    sources: frozenset[str]
    logic: TableLogic
    window_bytes: int = 0

    def filter(self, predicate: Callable[[Any, Any], object], *, store: str = "", name: str = "") -> KTable:
        """Keep the entries for which ``predicate(key, value)`` is true. The result lacks all other entries."""
        name = self.graph.new_name("KTABLE-FILTER-", name)
        return self._computed(
            name, lambda key, value: value if predicate(key, value) else None, store, self.value, is_filter=True
        )

    def map_values(
        self,
        mapper: Callable[..., Any],
        *,
        with_key: bool = False,
        store: str = "",
        value: Serde | None = None,
        name: str = "",
    ) -> KTable:
        """Replace every value by ``mapper(value)``, or by ``mapper(key, value)`` if ``with_key``.

        :param value: the serde of the new values. An operation that writes them may name another one.
        """
        name = self.graph.new_name("KTABLE-MAPVALUES-", name)
        with_both = mapper if with_key else lambda key, value: mapper(value)
        return self._computed(name, with_both, store, value, is_filter=False)

    def join(
        self, other: KTable, joiner: Joiner, *, store: str = "", value: Serde | None = None, name: str = ""
    ) -> KTable:
        """Join the two values of every key that both tables have, by ``joiner(left, right)``."""
        return self._joined(other, joiner, Side.INNER, store, value, name)

    def left_join(
        self, other: KTable, joiner: Joiner, *, store: str = "", value: Serde | None = None, name: str = ""
    ) -> KTable:
        """Join the values of this table's keys. If the other table lacks the key, ``right`` is ``None``."""
        return self._joined(other, joiner, Side.LEFT, store, value, name)

    def outer_join(
        self, other: KTable, joiner: Joiner, *, store: str = "", value: Serde | None = None, name: str = ""
    ) -> KTable:
        """Join the values of all keys of both tables. If one table lacks the key, its value is ``None``."""
        return self._joined(other, joiner, Side.OUTER, store, value, name)

    def to_stream(self, *, name: str = "") -> KStream:
        """Return the stream of the table's updates."""
        from kafka_rescale.core.pipeline.streams import KStream

        name = self.graph.new_name("KTABLE-TOSTREAM-", name)
        node = GraphNode(name, partial(_write_to_stream, name))
        self.graph.add(node, self.node)
        return KStream(self.graph, node, self.key, self.value, self.sources, window_bytes=self.window_bytes)

    def _computed(
        self, name: str, compute: Compute, store: str, value: Serde | None, *, is_filter: bool
    ) -> KTable:
        kept = self._kept_in(store, value)
        logic = ComputedTable(self.logic, compute, kept, is_filter=is_filter)

        def write(nodes: Nodes, parents: tuple[str, ...]) -> None:
            nodes.add(Node(name, Kind.PROCESSOR, logic.processor, parents))
            if kept is not None:
                nodes.add_store(kept.store, (name,))

        node = GraphNode(name, write)
        self.graph.add(node, self.node)
        return KTable(self.graph, node, self.key, value, self.sources, logic, self.window_bytes)

    def _kept_in(self, store: str, value: Serde | None) -> MaterializedTable | None:
        """Return the definition of a table that has these keys and a store of this name. None without a name."""
        if not store:
            return None
        definition = StoreDefinition(store, "timestamped-key-value", window_bytes=self.window_bytes)
        return MaterializedTable(definition, StoreSerdes(store, self.key, value))

    def _joined(
        self, other: KTable, joiner: Joiner, side: Side, store: str, value: Serde | None, name: str
    ) -> KTable:
        merge = self.graph.new_name("KTABLE-MERGE-", name)
        sources = self.graph.copartition(self.sources, other.sources)
        this = self.graph.new_name("KTABLE-JOINTHIS-", name and f"{name}-join-this")
        that = self.graph.new_name("KTABLE-JOINOTHER-", name and f"{name}-join-other")
        kept = self._kept_in(store, value)
        logic = JoinedTable(self.logic, other.logic, joiner, side, kept)

        def write(nodes: Nodes, parents: tuple[str, ...]) -> None:
            nodes.add(Node(this, Kind.PROCESSOR, logic.from_left, (self.node.name,)))
            nodes.add(Node(that, Kind.PROCESSOR, logic.from_right, (other.node.name,)))
            nodes.add(Node(merge, Kind.PROCESSOR, logic.merge, (this, that)))
            nodes.connect(this, logic.right_reader.stores)
            nodes.connect(that, logic.left_reader.stores)
            if kept is not None:
                nodes.add_store(kept.store, (merge,))

        node = GraphNode(merge, write)
        self.graph.add(node, self.node, other.node)
        return KTable(self.graph, node, self.key, value, sources, logic, self.window_bytes)


def _write_to_stream(name: str, nodes: Nodes, parents: tuple[str, ...]) -> None:
    nodes.add(Node(name, Kind.PROCESSOR, lambda context: ToStream(), parents))
