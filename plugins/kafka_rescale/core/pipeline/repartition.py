"""Repartition topics. A filter and a sink end one sub-topology, and a source begins the next one."""

from __future__ import annotations

import re

from kafka_rescale.core.pipeline import stateless
from kafka_rescale.core.pipeline.graph import Graph, GraphNode
from kafka_rescale.core.pipeline.nodes import Kind, Node, Nodes, SinkTarget
from kafka_rescale.core.pipeline.processor import Processor, TaskContext
from kafka_rescale.core.pipeline.serdes import Serde
from kafka_rescale.core.topology.topology import REPARTITION_SUFFIX

_GENERATED = re.compile(r"KSTREAM.*-[0-9]{10}")


def add_repartition(
    graph: Graph,
    parent: GraphNode,
    prefix: str,
    key: Serde | None,
    value: Serde | None,
    partitions: int | None = None,
) -> GraphNode:
    """Add a repartition topic behind an operation and return the node that reads it.

    As in ``KStreamImpl#createRepartitionedSource``, the three nodes use up three indexes, even if their names are
    made from the prefix.

    :param prefix: the prefix of the topic's name.
    :param partitions: the number of partitions that the program asks for, or None if it asks for no number.
    """
    node = repartition_node(graph, prefix, key, value, partitions)
    graph.add(node, parent)
    return node


def repartition_node(
    graph: Graph, prefix: str, key: Serde | None, value: Serde | None, partitions: int | None = None
) -> GraphNode:
    """Return the node that reads a repartition topic. The node has no parent yet."""
    topic = prefix if prefix.endswith(REPARTITION_SUFFIX) else f"{prefix}{REPARTITION_SUFFIX}"
    sink = graph.new_name("KSTREAM-SINK-")
    null_filter = graph.new_name("KSTREAM-FILTER-")
    source = graph.new_name("KSTREAM-SOURCE-")
    if not _GENERATED.fullmatch(prefix):
        sink, null_filter, source = f"{topic}-sink", f"{topic}-filter", f"{topic}-source"
    target = SinkTarget(topic, key, value, is_output=False)

    def write(nodes: Nodes, parents: tuple[str, ...]) -> None:
        nodes.add_repartition(topic, partitions)
        nodes.add(Node(null_filter, Kind.PROCESSOR, null_keys, parents))
        nodes.add(Node(sink, Kind.SINK, lambda c: stateless.Sink(c, target), (null_filter,), (topic,)))
        nodes.add(Node(source, Kind.SOURCE, lambda context: stateless.Source(key, value), topics=(topic,)))

    node = GraphNode(source, write)
    graph.reads(source, topic)

    def null_keys(context: TaskContext) -> Processor:
        return stateless.PassThrough() if node.leads_to_null_keys() else stateless.WithKey()

    return node
