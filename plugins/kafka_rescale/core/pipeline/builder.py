"""The start of a pipeline, with the methods of ``StreamsBuilder``, and the pipeline that is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.core.pipeline import stateless
from kafka_rescale.core.pipeline.describe import described
from kafka_rescale.core.pipeline.graph import Graph, GraphNode
from kafka_rescale.core.pipeline.nodes import Kind, Node, Nodes
from kafka_rescale.core.pipeline.serdes import Serde
from kafka_rescale.core.pipeline.stores.table_stores import StoreSerdes
from kafka_rescale.core.pipeline.streams import KStream
from kafka_rescale.core.pipeline.sub_topology import BuiltSubTopology
from kafka_rescale.core.pipeline.table_logic import SourceTable
from kafka_rescale.core.pipeline.tables import KTable
from kafka_rescale.core.pipeline.task import StoreDefinition
from kafka_rescale.core.topology.describe import parse_describe
from kafka_rescale.core.topology.topology import Topology


class StreamsBuilder:
    """Collects the operations of a pipeline. ``build`` makes the pipeline; a second call returns the same one."""

    def __init__(self) -> None:
        self._graph = Graph()
        self._built: Pipeline | None = None

    def stream(
        self, *topics: str, key: Serde | None = None, value: Serde | None = None, name: str = ""
    ) -> KStream:
        """Read input topics as a stream of records.

        :param topics: one topic or more.
        :param key: the serde of the keys. Without a serde, keys stay bytes. The same holds for ``value``.
        """
        if not topics:
            raise InvalidInput(
                "stream", found="no topic", expected="at least one topic", remedy="Name the topics of the stream."
            )
        name = self._graph.new_name("KSTREAM-SOURCE-", name)

        def write(nodes: Nodes, parents: tuple[str, ...]) -> None:
            nodes.add(Node(name, Kind.SOURCE, lambda context: stateless.Source(key, value), topics=topics))

        node = GraphNode(name, write, topics)
        self._graph.add(node)
        return KStream(self._graph, node, key, value, self._graph.reads(name, *topics))

    def table(
        self,
        topic: str,
        *,
        key: Serde | None = None,
        value: Serde | None = None,
        store: str = "",
        name: str = "",
    ) -> KTable:
        """Read an input topic as a table. Every record is the new value of its key; a tombstone deletes the key.

        :param store: the name of the table's store. Without a name, the table has a store only if an operation
            needs one.
        """
        graph = self._graph
        definition = StoreDefinition(store or graph.new_store_name(f"{topic}-"), "timestamped-key-value")
        source = graph.new_name("KSTREAM-SOURCE-", name and f"{name}-source")
        name = graph.new_name("KTABLE-SOURCE-", name)
        logic = SourceTable(definition, StoreSerdes(definition.name, key, value), bool(store))

        def write(nodes: Nodes, parents: tuple[str, ...]) -> None:
            nodes.add(Node(source, Kind.SOURCE, lambda context: stateless.Source(key, value), topics=(topic,)))
            nodes.add(Node(name, Kind.PROCESSOR, logic.processor, (source,)))
            if logic.is_materialized:
                nodes.add_store(definition, (name,))

        node = GraphNode(name, write)
        graph.add(node)
        return KTable(graph, node, key, value, graph.reads(source, topic), logic)

    def build(self) -> Pipeline:
        """Return the pipeline. No operation can be added to it afterwards.

        :raises InvalidInput: two nodes or two stores have the same name, or sources overlap.
        """
        if self._built is None:
            self._built = Pipeline(self._graph.build(), self._graph.copartitioned_topics())
        return self._built


@dataclass(frozen=True)
class Pipeline:
    """A pipeline that can be described and run.

    :param copartitioned: sets of topics that are joined. The topics of one set must have equally many partitions.
    """

    nodes: Nodes
    copartitioned: tuple[frozenset[str], ...]

    def describe(self) -> str:
        """Return the text that Kafka Streams 4.3.1 prints for the same program by ``Topology#describe()``."""
        return described(self.nodes)

    @cached_property
    def topology(self) -> Topology:
        """The pipeline's topology. The planning of an expansion uses the same form for applications."""
        return parse_describe(self.describe())

    def sub_topologies(self) -> tuple[BuiltSubTopology, ...]:
        """Return the sub-topologies in the order of their ids."""
        stores = self.nodes.stores
        return tuple(
            BuiltSubTopology(
                number,
                tuple(group),
                tuple(stores[s] for s in dict.fromkeys(name for node in group for name in node.stores)),
            )
            for number, group in enumerate(self.nodes.groups())
        )

    def check_copartitioned(self, counts: Mapping[str, int]) -> None:
        """Refuse partition counts that would bring two records of one join into different tasks.

        :param counts: partition counts by topic. The names of repartition topics have no application id in front.
        :raises Refused: topics that are joined have different counts (``CopartitionedTopicsEnforcer``).
        """
        for topics in self.copartitioned:
            if len({counts[topic] for topic in topics}) > 1:
                raise Refused(
                    f"joined topics {', '.join(sorted(topics))}",
                    found=", ".join(f"{counts[topic]} partitions of {topic}" for topic in sorted(topics)),
                    expected="equally many partitions",
                    remedy="Grow the smaller topic, or call repartition() on one of the streams.",
                )

    @property
    def enforced_partitions(self) -> dict[str, int]:
        """The partition counts that the program asks for, by repartition topic (without the application id)."""
        return {topic: n for topic, n in self.nodes.repartitions.items() if n is not None}
