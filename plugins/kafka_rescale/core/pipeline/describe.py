"""The text that ``Topology#describe()`` prints.

Kafka Streams sorts the nodes by the number of nodes behind them, then by name. It sorts the neighbours of a node
in the same way, but by the numbers at the moment when it connected them
(``InternalTopologyBuilder#describeSubtopology``). These numbers depend on the order in which nodes are connected.
Therefore this module takes the same steps in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kafka_rescale.core.pipeline.java_order import TreeOrder, hash_order
from kafka_rescale.core.pipeline.nodes import Kind, Node, Nodes


@dataclass(eq=False)
class _Described:
    """A node with its neighbours in the order of ``NodeComparator``.

    :param size: number of nodes behind this node, plus one for this node. A node that can be reached in two ways
        counts twice.
    """

    node: Node
    size: int = 1
    predecessors: TreeOrder[_Described] = field(default_factory=lambda: TreeOrder(_compare))
    successors: TreeOrder[_Described] = field(default_factory=lambda: TreeOrder(_compare))

    def grow(self, by: int) -> None:
        """Add to the size of this node, and to the sizes of all nodes that have been connected in front of it."""
        self.size += by
        for predecessor in self.predecessors:
            predecessor.grow(by)


def described(nodes: Nodes) -> str:
    """Return the text that ``Topology#describe()`` prints."""
    parts = [f"  Sub-topology: {number}\n{_sub_topology(group)}\n" for number, group in enumerate(nodes.groups())]
    return "Topologies:\n " + "".join(parts)


def _sub_topology(group: list[Node]) -> str:
    by_name = {node.name: _Described(node) for node in group}
    # Kafka Streams fills a map of names from a set of names, so the order of a hash table applies twice.
    for name in hash_order(hash_order(by_name)):
        here = by_name[name]
        for predecessor in (by_name[p] for p in here.node.predecessors):
            here.predecessors.add(predecessor)
            predecessor.successors.add(here)
            predecessor.grow(here.size)
    ordered = sorted(by_name.values(), key=lambda d: (-d.size, d.node.name))
    return "".join(f"    {_text(each)}\n" for each in ordered)


def _text(each: _Described) -> str:
    node = each.node
    after = f"\n      --> {_names(each.successors)}"
    before = f"\n      <-- {_names(each.predecessors)}"
    if node.kind is Kind.SOURCE:
        return f"Source: {node.name} (topics: [{', '.join(hash_order(node.topics))}]){after}"
    if node.kind is Kind.SINK:
        return f"Sink: {node.name} (topic: {node.topics[0]}){before}"
    return f"Processor: {node.name} (stores: [{', '.join(hash_order(hash_order(node.stores)))}]){after}{before}"


def _names(nodes: TreeOrder[_Described]) -> str:
    return ", ".join(each.node.name for each in nodes) or "none"


def _compare(one: _Described, two: _Described) -> int:
    if one.size != two.size:
        return two.size - one.size
    return (one.node.name > two.node.name) - (one.node.name < two.node.name)
