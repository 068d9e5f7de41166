"""Streams of records, with the methods of ``KStream``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline import stateless
from kafka_rescale.core.pipeline.graph import Graph, GraphNode
from kafka_rescale.core.pipeline.grouped import KGroupedStream
from kafka_rescale.core.pipeline.join_streams import join_node, stream_join
from kafka_rescale.core.pipeline.nodes import Kind, Node, Nodes, SinkTarget, Supplier
from kafka_rescale.core.pipeline.processor import Processor, TaskContext
from kafka_rescale.core.pipeline.repartition import add_repartition, repartition_node
from kafka_rescale.core.pipeline.serdes import Serde
from kafka_rescale.core.pipeline.stores.table_stores import StoreSerdes
from kafka_rescale.core.pipeline.table_joins import Joiner, Side, StreamTableJoin
from kafka_rescale.core.pipeline.table_logic import Getter
from kafka_rescale.core.pipeline.tables import KTable
from kafka_rescale.core.pipeline.vectorized import with_serdes
from kafka_rescale.core.pipeline.windows import JoinWindows


@dataclass(frozen=True)
class HowJoined:
    """The optional arguments of a join.

    :param key: the serde of the keys where they are stored or repartitioned. ``value`` and ``other_value`` are the
        serdes of the values of this stream and of the other stream.
    :param store: in a join of two streams, the prefix of the names of the stores.
    :param name: in a join with a table, the name of the join's node; in a join of two streams, the prefix of the
        names of the nodes. It is also the prefix of the names of repartition topics: ``<name>-repartition`` in a
        join with a table, ``<name>-left-repartition`` and ``<name>-right-repartition`` in a join of two streams.
    """

    key: Serde | None = None
    value: Serde | None = None
    other_value: Serde | None = None
    store: str = ""
    name: str = ""


@dataclass(frozen=True)
class KStream:
    """A stream of records. Every method adds an operation to the pipeline and returns the operation's results.

    A parameter ``name`` is the operation's name in ``describe()``. Without it, a name is generated.

    :param key: the serde with which keys are written. It is ``None`` behind an operation that may have changed the
        keys, unless this operation names the serde of the new keys.
    :param window_bytes: number of bytes at the end of each key that did not decide the partition of its record.
        Updates of a windowed table have such bytes: those of the window. The next repartition topic ends this,
        because there the whole key decides.
    """

    graph: Graph
    node: GraphNode
    key: Serde | None
    value: Serde | None
    sources: frozenset[str]
    repartition_required: bool = False
    window_bytes: int = 0
    _repartitioned: list[GraphNode] = field(default_factory=list, init=False)

    def filter(self, predicate: Callable[[Any, Any], object], *, name: str = "") -> KStream:
        """Keep the records for which ``predicate(key, value)`` is true.

        :param predicate: a function. It may be vectorised, as may the functions of ``map_values`` and
            ``select_key``.
        """
        name = self.graph.new_name("KSTREAM-FILTER-", name)
        typed = with_serdes(predicate, self.key, self.value)
        return self._then(name, lambda context: stateless.Filter(typed))

    def map_values(
        self, mapper: Callable[..., Any], *, with_key: bool = False, value: Serde | None = None, name: str = ""
    ) -> KStream:
        """Replace every value by ``mapper(value)``, or by ``mapper(key, value)`` if ``with_key``.

        :param value: the serde of the new values. An operation that writes them may name another one.
        """
        name = self.graph.new_name("KSTREAM-MAPVALUES-", name)
        typed = with_serdes(mapper, *((self.key, self.value) if with_key else (self.value,)), result=value)
        return replace(self._then(name, lambda context: stateless.MapValues(typed, with_key)), value=value)

    def select_key(
        self, mapper: Callable[[Any, Any], Any], *, key: Serde | None = None, name: str = ""
    ) -> KStream:
        """Give every record the key ``mapper(key, value)``.

        A later operation that needs the records by key repartitions them.

        :param key: the serde of the new keys. An operation that writes them may name another one.
        """
        name = self.graph.new_name("KSTREAM-KEY-SELECT-", name)
        typed = with_serdes(mapper, self.key, self.value, result=key)
        stream = self._then(name, lambda context: stateless.SelectKey(typed))
        return replace(stream, key=key, repartition_required=True, window_bytes=0)

    def repartition(
        self,
        *,
        name: str = "",
        key: Serde | None = None,
        value: Serde | None = None,
        partitions: int | None = None,
    ) -> KStream:
        """Write the stream to an internal topic and return the stream that reads this topic.

        :param name: the prefix of the topic's name ``<name>-repartition``.
        :param partitions: the topic's number of partitions. Without it, the topic gets as many partitions as the
            largest topic that the writing sub-topology reads.
        """
        name = name or self.graph.new_name("KSTREAM-REPARTITION-")
        keys, values = key or self.key, value or self.value
        node = add_repartition(self.graph, self.node, name, keys, values, partitions)
        return KStream(self.graph, node, keys, values, frozenset({node.name}))

    def group_by_key(
        self, *, name: str = "", key: Serde | None = None, value: Serde | None = None
    ) -> KGroupedStream:
        """Group the records by their key. If the keys may have been changed, a repartition topic comes first.

        :param name: the prefix of the repartition topic's name ``<name>-repartition``. Without it, the name of the
            store is the prefix.
        """
        return KGroupedStream(
            self.graph,
            self.node,
            key or self.key,
            value or self.value,
            self.sources,
            self.repartition_required,
            repartition_name=name,
            window_bytes=self.window_bytes,
        )

    def join(
        self, other: KTable | KStream, joiner: Joiner, windows: JoinWindows | None = None, **how: Any
    ) -> KStream:
        """Join every record with the table's value of the same key, or with records of another stream.

        :param joiner: ``joiner(value, other_value)`` returns the joined value.
        :param windows: how far apart in time two records of streams may be. A join with a table has no windows.
        :param how: see :class:`HowJoined`.
        """
        return self._joined(other, joiner, Side.INNER, windows, HowJoined(**how))

    def left_join(
        self, other: KTable | KStream, joiner: Joiner, windows: JoinWindows | None = None, **how: Any
    ) -> KStream:
        """Join as ``join`` does, and also emit each record without a partner. ``joiner`` gets ``None`` for it."""
        return self._joined(other, joiner, Side.LEFT, windows, HowJoined(**how))

    def outer_join(self, other: KStream, joiner: Joiner, windows: JoinWindows, **how: Any) -> KStream:
        """Join two streams, and also emit each record of either side that has no partner.

        ``joiner`` gets ``None`` in place of the missing partner.
        """
        return self._joined(other, joiner, Side.OUTER, windows, HowJoined(**how))

    def to(self, topic: str, *, key: Serde | None = None, value: Serde | None = None, name: str = "") -> None:
        """Write the stream to an output topic."""
        name = self.graph.new_name("KSTREAM-SINK-", name)
        target = SinkTarget(topic, key or self.key, value or self.value)
        self.graph.add(GraphNode(name, partial(_write_sink, name, target)), self.node)

    def _joined(
        self, other: KTable | KStream, joiner: Joiner, side: Side, windows: JoinWindows | None, how: HowJoined
    ) -> KStream:
        if isinstance(other, KTable) and windows is None:
            return self._join_table(other, joiner, side is Side.LEFT, how)
        if isinstance(other, KStream) and windows is not None:
            return self._join_stream(other, joiner, side, windows, how)
        raise InvalidInput(
            f"join of {self.node.name}",
            found=f"a {type(other).__name__} {'without' if windows is None else 'with'} windows",
            expected="a KTable without windows, or a KStream with windows",
            remedy="Give windows=JoinWindows.of(…) for a stream, and no windows for a table.",
        )

    def _join_table(self, table: KTable, joiner: Joiner, is_left: bool, how: HowJoined) -> KStream:
        stream = self._by_key(how.name or self.node.name, how.key, how.value)
        sources = self.graph.copartition(stream.sources, table.sources)
        name = self.graph.new_name("KSTREAM-LEFTJOIN-" if is_left else "KSTREAM-JOIN-", how.name)
        stores, getter = table.logic.reader()

        def write(nodes: Nodes, parents: tuple[str, ...]) -> None:
            supplier = partial(_stream_table_join, getter, joiner, is_left)
            nodes.add(Node(name, Kind.PROCESSOR, supplier, parents))
            nodes.connect(name, stores)

        node = GraphNode(name, write, takes_null_keys=is_left)
        self.graph.add(node, stream.node)
        key = how.key or stream.key
        return KStream(self.graph, node, key, None, sources, window_bytes=stream.window_bytes)

    def _join_stream(
        self, other: KStream, joiner: Joiner, side: Side, windows: JoinWindows, how: HowJoined
    ) -> KStream:
        left = self._by_key((how.name and f"{how.name}-left") or self.node.name, how.key, how.value)
        right = other._by_key((how.name and f"{how.name}-right") or other.node.name, how.key, how.other_value)
        sources = self.graph.copartition(left.sources, right.sources)
        key = how.key or left.key
        serdes = (
            StoreSerdes("", key, how.value or left.value),
            StoreSerdes("", key, how.other_value or right.value),
        )
        join = stream_join(self.graph, side, windows, joiner, serdes, left.window_bytes, how.store, how.name)
        node = join_node(self.graph, join, (left.node, right.node), side, lambda c: stateless.PassThrough())
        return KStream(self.graph, node, key, None, sources, window_bytes=left.window_bytes)

    def _by_key(self, prefix: str, key: Serde | None, value: Serde | None) -> KStream:
        """Return this stream with every record in the partition of its key.

        If the keys may have been changed, this is a stream behind a repartition topic. As in
        ``KStreamImpl#repartitionForJoin``, all joins of this stream that have no name share one such topic.
        """
        if not self.repartition_required:
            return self
        keys, values = key or self.key, value or self.value
        made = repartition_node(self.graph, prefix, keys, values)
        if not self._repartitioned or prefix != self.node.name:
            self._repartitioned[:] = [made]
            self.graph.add(made, self.node)
        return KStream(self.graph, self._repartitioned[0], keys, values, frozenset({made.name}))

    def _then(self, name: str, supplier: Supplier) -> KStream:
        node = GraphNode(name, partial(write_processor, name, supplier))
        self.graph.add(node, self.node)
        return replace(self, node=node)


def write_processor(name: str, supplier: Supplier, nodes: Nodes, parents: tuple[str, ...]) -> None:
    """Add a processor behind its parents."""
    nodes.add(Node(name, Kind.PROCESSOR, supplier, parents))


def _stream_table_join(
    getter: Callable[[TaskContext], Getter], joiner: Joiner, is_left: bool, context: TaskContext
) -> Processor:
    return StreamTableJoin(context, getter(context), joiner, is_left)


def _write_sink(name: str, target: SinkTarget, nodes: Nodes, parents: tuple[str, ...]) -> None:
    nodes.add(Node(name, Kind.SINK, lambda context: stateless.Sink(context, target), parents, (target.topic,)))
