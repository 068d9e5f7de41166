"""Tables, in the words of ``KTable``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kafka_rescale.core.pipeline.aggregates import ToStream
from kafka_rescale.core.pipeline.graph import Graph, GraphNode
from kafka_rescale.core.pipeline.nodes import Kind, Node, Nodes
from kafka_rescale.core.pipeline.serdes import Serde
from kafka_rescale.core.pipeline.stores import StoreSerdes
from kafka_rescale.core.pipeline.task import StoreDefinition

if TYPE_CHECKING:
    from kafka_rescale.core.pipeline.streams import KStream


class TableLogic:
    """How a table is kept and read."""

    def __init__(self, store: StoreDefinition, serdes: StoreSerdes) -> None:
        self.store, self.serdes = store, serdes
        self.sends_old = False


@dataclass(frozen=True)
class KTable:
    """A table: the latest value of every key; every method adds an operation to the pipeline."""

    graph: Graph
    node: GraphNode
    key: Serde | None
    value: Serde | None
    sources: frozenset[str]
    logic: TableLogic

    def to_stream(self, *, name: str = "") -> KStream:
        """Return the stream of the table's updates."""
        from kafka_rescale.core.pipeline.streams import KStream

        name = self.graph.new_name("KTABLE-TOSTREAM-", name)
        node = GraphNode(name, partial(_write_to_stream, name))
        self.graph.add(node, self.node)
        return KStream(self.graph, node, self.key, self.value, self.sources)


def _write_to_stream(name: str, nodes: Nodes, parents: tuple[str, ...]) -> None:
    nodes.add(Node(name, Kind.PROCESSOR, lambda context: ToStream(), parents))
