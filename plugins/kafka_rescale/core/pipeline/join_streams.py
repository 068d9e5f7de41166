"""The nodes and stores of a join of two streams (``KStreamImplJoin``, ``StreamStreamJoinNode``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka_rescale.core.pipeline.graph import Graph, GraphNode
from kafka_rescale.core.pipeline.nodes import Kind, Node, Nodes
from kafka_rescale.core.pipeline.processor import Processor, TaskContext
from kafka_rescale.core.pipeline.stores.outer_join_store import OuterJoinStore
from kafka_rescale.core.pipeline.stores.table_stores import StoreSerdes
from kafka_rescale.core.pipeline.stores.window_stores import JoinWindowStore
from kafka_rescale.core.pipeline.stream_joins import JoinSide, JoinWindow, StreamStreamJoin, TimeTracker
from kafka_rescale.core.pipeline.table_joins import Side
from kafka_rescale.core.pipeline.task import StoreDefinition
from kafka_rescale.core.pipeline.windows import JoinWindows

_JOIN = "KSTREAM-JOINTHIS-"
_OUTER = "KSTREAM-OUTERTHIS-"


@dataclass(frozen=True)
class _Half:
    """One side of a join: the node that keeps the side's records, the node that joins them, and the store.

    :param windowed: the name of the node that keeps the records.
    :param join: the name of the node that joins the records.
    """

    windowed: str
    join: str
    store: StoreDefinition
    serdes: StoreSerdes
    side: JoinSide

    def keeping(self, context: TaskContext) -> Processor:
        """Return the processor that keeps the records of a task."""
        return JoinWindow(self.open(context))

    def open(self, context: TaskContext) -> JoinWindowStore:
        """Return the store of a task."""
        return JoinWindowStore(context, self.store, self.serdes)


@dataclass(frozen=True)
class StreamJoin:
    """A join of two streams.

    :param merge: the name of the node where the results of both sides meet.
    :param lonely: the store of the records without a partner, or ``None`` in an inner join.
    """

    merge: str
    left: _Half
    right: _Half
    lonely: StoreDefinition | None

    def write_left(self, nodes: Nodes, parents: tuple[str, ...]) -> None:
        """Add the node that keeps the left side's records."""
        nodes.add(Node(self.left.windowed, Kind.PROCESSOR, self.left.keeping, parents))

    def write_right(self, nodes: Nodes, parents: tuple[str, ...]) -> None:
        """Add the node that keeps the right side's records."""
        nodes.add(Node(self.right.windowed, Kind.PROCESSOR, self.right.keeping, parents))

    def write(self, nodes: Nodes, parents: tuple[str, ...], merged: Callable[[TaskContext], Processor]) -> None:
        """Add the nodes that join, behind the nodes that keep the records.

        :param merged: makes the processor of the node where the results of both sides meet.
        """
        left, right = self.left, self.right
        nodes.add(Node(left.join, Kind.PROCESSOR, partial(self._joining, left, right), (left.windowed,)))
        nodes.add(Node(right.join, Kind.PROCESSOR, partial(self._joining, right, left), (right.windowed,)))
        nodes.add(Node(self.merge, Kind.PROCESSOR, merged, (left.join, right.join)))
        nodes.add_store(left.store, (left.windowed, right.join))
        nodes.add_store(right.store, (right.windowed, left.join))
        if self.lonely is not None:
            nodes.add_store(self.lonely, (left.join, right.join))

    def _joining(self, here: _Half, there: _Half, context: TaskContext) -> Processor:
        lonely = None
        if self.lonely is not None:
            lonely = OuterJoinStore(context, self.lonely, self.left.serdes, self.right.serdes)
        tracker = TimeTracker.of(context, self.left.store.name, self.merge)
        return StreamStreamJoin(context, here.side, there.open(context), lonely, tracker)


def stream_join(
    graph: Graph,
    side: Side,
    windows: JoinWindows,
    joiner: Callable[[Any, Any], Any],
    serdes: tuple[StoreSerdes, StoreSerdes],
    window_bytes: int,
    store: str,
    name: str,
) -> StreamJoin:
    """Return a join with the names that Kafka Streams gives it.

    :param serdes: the serdes of the left and the right store.
    :param window_bytes: number of bytes at the end of each key that did not decide the partition of its record.
    :param store: the prefix of the stores' names. If it is empty, the names are generated.
    :param name: the prefix of the nodes' names. If it is empty, the names are generated.
    """
    is_left, is_outer = side is not Side.INNER, side is Side.OUTER
    this_suffix = "-outer-this-join" if is_outer else "-this-join"
    other_suffix = "-outer-other-join" if is_left else "-other-join"
    windowed = [
        graph.new_name("KSTREAM-WINDOWED-", name and f"{name}-{which}-windowed") for which in ("this", "other")
    ]
    this = graph.new_name(_OUTER if is_outer else _JOIN)
    other = graph.new_name("KSTREAM-OUTEROTHER-" if is_left else "KSTREAM-JOINOTHER-")
    merge = graph.new_name("KSTREAM-MERGE-", name and f"{name}-merge")

    def half(index: int, generated: str, suffix: str, joins: JoinSide) -> _Half:
        kept_name = f"{store + suffix if store else generated}-store"
        kept = StoreDefinition(kept_name, "join-window", windows.retention_ms, window_bytes=window_bytes)
        return _Half(
            windowed[index],
            name + suffix if name else generated,
            kept,
            serdes[index]._replace(name=kept.name),
            joins,
        )

    shared = f"{store}{'-outer' if is_outer else '-left'}-shared-join" if store else ""
    generated = "KSTREAM-OUTERSHARED-" + this.removeprefix(_OUTER if is_outer else _JOIN)
    return StreamJoin(
        merge,
        half(0, this, this_suffix, JoinSide(True, is_left, windows, joiner)),
        half(1, other, other_suffix, JoinSide(False, is_outer, windows, joiner)),
        StoreDefinition(f"{shared or generated}-store", "outer-join", window_bytes=window_bytes)
        if is_left
        else None,
    )


def join_node(
    graph: Graph,
    join: StreamJoin,
    nodes: tuple[GraphNode, GraphNode],
    side: Side,
    merged: Callable[..., Processor],
) -> GraphNode:
    """Add a join behind the nodes of its two streams and return the node that hands on its results."""
    graph.add(GraphNode(join.left.windowed, join.write_left), nodes[0])
    graph.add(GraphNode(join.right.windowed, join.write_right), nodes[1])
    node = GraphNode(join.merge, partial(join.write, merged=merged), takes_null_keys=side is not Side.INNER)
    graph.add(node, *nodes)
    return node
