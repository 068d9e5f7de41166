"""The program as the user has written it, before it becomes nodes of a topology.

This module follows ``InternalStreamsBuilder``. One counter gives the index of every generated name. The nodes are
added to the topology in the order of their priorities, and this order decides the numbers of the sub-topologies.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.nodes import Nodes

Writer = Callable[[Nodes, tuple[str, ...]], None]
"""Takes the nodes so far and the names of the parents; adds the nodes of one operation."""


@dataclass(eq=False)
class GraphNode:
    """One operation of the program.

    :param topics: the topics of a source. Two sources with the same topics are one source.
    :param takes_null_keys: whether this is a left or outer join. Repartition topics in front of such a join carry
        records without a key.
    """

    name: str
    write: Writer
    topics: tuple[str, ...] = ()
    parents: dict[int, GraphNode] = field(default_factory=dict)
    children: dict[int, GraphNode] = field(default_factory=dict)
    takes_null_keys: bool = False
    priority: int = -1
    is_written: bool = False

    def adopt(self, child: GraphNode) -> None:
        """Become a parent of a node."""
        self.children[id(child)] = child
        child.parents[id(self)] = self

    def leads_to_null_keys(self) -> bool:
        """Whether an operation behind this node takes records without a key (KIP-962)."""
        seen: dict[int, GraphNode] = {}
        waiting = list(self.children.values())
        while waiting:
            node = waiting.pop()
            if node.takes_null_keys:
                return True
            if id(node) not in seen:
                seen[id(node)] = node
                waiting += node.children.values()
        return False

    def move_children_to(self, other: GraphNode) -> None:
        """Give all children to another node."""
        for child in self.children.values():
            del child.parents[id(self)]
            other.adopt(child)
        self.children.clear()


class Graph:
    """All operations of one program."""

    def __init__(self) -> None:
        self._index = 0
        self._priority = 0
        self._root = GraphNode("root", lambda nodes, parents: None)
        self._copartitioned: list[frozenset[str]] = []
        self._topics: dict[str, tuple[str, ...]] = {}
        self._is_built = False

    def new_name(self, prefix: str, chosen: str = "") -> str:
        """Return the prefix with the next index, which has ten digits.

        :param chosen: the user's own name. If it is given, the method returns it instead. The index counts as used
            in both cases.
        """
        self._index += 1
        return chosen or f"{prefix}{self._index - 1:010d}"

    def new_store_name(self, prefix: str) -> str:
        """Return a generated name of a store."""
        return self.new_name(f"{prefix}STATE-STORE-")

    def copartition(self, *sources: frozenset[str]) -> frozenset[str]:
        """Note that the topics of these sources must have equal partition counts. Return all sources as a set."""
        self._copartitioned.append(frozenset().union(*sources))
        return self._copartitioned[-1]

    def reads(self, source: str, *topics: str) -> frozenset[str]:
        """Note the topics that a source reads. Return the source as a set, since streams keep sets of sources."""
        self._topics[source] = topics
        return frozenset({source})

    def copartitioned_topics(self) -> tuple[frozenset[str], ...]:
        """Return the sets of topics that must have equally many partitions."""
        sets = (frozenset(t for name in group for t in self._topics[name]) for group in self._copartitioned)
        return tuple(dict.fromkeys(topics for topics in sets if len(topics) > 1))

    def add(self, node: GraphNode, *parents: GraphNode) -> None:
        """Add an operation behind its parents. An operation without parents reads a topic.

        :raises InvalidInput: the pipeline has been built already.
        """
        if self._is_built:
            raise InvalidInput(
                f"operation {node.name}",
                found="a pipeline that has been built already",
                expected="operations before build()",
                remedy="Call build() at the end of the pipeline.",
            )
        for parent in parents or (self._root,):
            parent.adopt(node)
            node.priority = self._priority
            self._priority += 1

    def build(self) -> Nodes:
        """Return the nodes of the topology. No operation can be added afterwards."""
        self._merge_sources()
        self._is_built = True
        nodes = Nodes()
        heap = [(-1, 0, self._root)]
        pushed = 0
        while heap:
            node = heapq.heappop(heap)[2]
            if node.is_written or not all(p.is_written for p in node.parents.values()):
                continue
            node.write(nodes, tuple(p.name for p in node.parents.values()))
            node.is_written = True
            for child in node.children.values():
                pushed += 1
                heapq.heappush(heap, (child.priority, pushed, child))
        return nodes

    def _merge_sources(self) -> None:
        """Merge the sources that read the same topics, because only one source can read a topic."""
        by_topic: dict[str, GraphNode] = {}
        for node in [n for n in self._root.children.values() if n.topics]:
            first = by_topic.setdefault(node.topics[0], node)
            by_topic.update({t: first for t in node.topics if t not in by_topic})
            if any(by_topic[t].topics != node.topics for t in node.topics):
                raise InvalidInput(
                    f"source of {', '.join(node.topics)}",
                    found="another source that reads only some of these topics",
                    expected="sources that read the same topics, or sources that share no topic",
                    remedy="Read each topic by its own stream.",
                )
            if first is not node:
                del self._root.children[id(node)]
                node.move_children_to(first)
