"""The nodes of a built pipeline, and the sub-topologies that they form.

As in ``InternalTopologyBuilder``, two nodes belong to one sub-topology if one node feeds the other or both use the
same store. Topics do not connect nodes; therefore a repartition topic separates two sub-topologies. The first node
of a sub-topology decides its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.serdes import Serde
from kafka_rescale.core.pipeline.task import StoreDefinition
from kafka_rescale.core.topology.topic_names import SAID, is_topic_name

if TYPE_CHECKING:
    from kafka_rescale.core.pipeline.processor import Processor, TaskContext

Supplier = Callable[["TaskContext"], "Processor"]


class Kind(Enum):
    """The kind of a node, by its word in ``Topology#describe()``."""

    SOURCE = "Source"
    PROCESSOR = "Processor"
    SINK = "Sink"


@dataclass
class Node:
    """A node of the topology, with its name in ``describe()``.

    :param topics: all topics that a source reads, or the topic that a sink writes.
    :param supplier: makes the node's processor for a task. Sources and sinks have processors as well.
    """

    name: str
    kind: Kind
    supplier: Supplier
    predecessors: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    stores: dict[str, None] = field(default_factory=dict)


class Nodes:
    """All nodes of a pipeline, in the order in which they were added."""

    def __init__(self) -> None:
        self.by_name: dict[str, Node] = {}
        self.stores: dict[str, StoreDefinition] = {}
        self.repartitions: dict[str, int | None] = {}
        self._readers: dict[str, str] = {}

    def add(self, node: Node) -> None:
        """Add a node behind its predecessors.

        :raises InvalidInput: another node has this name, another source reads the topic already, or the name can't
            be the name of a topic.
        """
        for name in (node.name, *node.topics):
            _check_name(name)
        if node.name in self.by_name:
            raise _named_twice("node", node.name)
        if node.kind is Kind.SOURCE:
            for topic in node.topics:
                if self._readers.setdefault(topic, node.name) != node.name:
                    raise _read_twice(topic)
        self.by_name[node.name] = node

    def add_store(self, store: StoreDefinition, users: Iterable[str]) -> None:
        """Add a store that some nodes use.

        :raises InvalidInput: another store has this name, or the name can't be the name of a topic.
        """
        _check_name(store.name)
        if self.stores.get(store.name, store) is not store:
            raise _named_twice("store", store.name)
        self.stores[store.name] = store
        for user in users:
            self.connect(user, (store.name,))

    def connect(self, user: str, stores: Iterable[str]) -> None:
        """Let a node use stores that have been added before."""
        self.by_name[user].stores.update(dict.fromkeys(stores))

    def add_repartition(self, topic: str, partitions: int | None) -> None:
        """Add a repartition topic.

        :param partitions: the number of partitions that the program asks for, or None if it asks for no number.
        """
        if topic in self.repartitions:
            raise _named_twice("repartition topic", topic)
        self.repartitions[topic] = partitions

    def groups(self) -> list[list[Node]]:
        """Return the nodes of every sub-topology.

        The nodes of a sub-topology keep the order in which they were added. Sub-topologies come in the order of
        their first nodes.
        """
        root = {name: name for name in self.by_name}

        def find(name: str) -> str:
            while root[name] != name:
                name = root[name]
            return name

        users: dict[str, str] = {}
        for node in self.by_name.values():
            for predecessor in node.predecessors:
                root[find(predecessor)] = find(node.name)
            for store in node.stores:
                root[find(users.setdefault(store, node.name))] = find(node.name)
        groups: dict[str, list[Node]] = {}
        for node in self.by_name.values():
            groups.setdefault(find(node.name), []).append(node)
        return list(groups.values())


def _check_name(name: str) -> None:
    if not is_topic_name(name):
        raise InvalidInput(
            f"name {name!r}",
            found="a name that can't be the name of a topic",
            expected=SAID,
            remedy="Choose another name: names of nodes and stores become names of topics.",
        )


def _named_twice(what: str, name: str) -> InvalidInput:
    return InvalidInput(
        f"{what} {name!r}",
        found=f"two {what}s of this name",
        expected="different names",
        remedy="Give one of them another name. Or leave its name out; then a name is generated.",
    )


def _read_twice(topic: str) -> InvalidInput:
    return InvalidInput(
        f"topic {topic!r}",
        found="two sources that read it, one of them as a table",
        expected="one source",
        remedy="Read the topic once, as a table, and make the stream from the table by to_stream().",
    )


@dataclass(frozen=True)
class SinkTarget:
    """The topic of a sink, and the serdes with which the sink writes it.

    :param key: the serde of the keys, or ``None`` if none is declared. The same holds for ``value``.
    :param is_output: whether the topic is an output. If the key is windowed, the key without its window decides
        the partition of an output (``StreamSinkNode``). In a repartition topic, the whole key decides.
    """

    topic: str
    key: Serde | None
    value: Serde | None
    is_output: bool = True
