"""A topology as a graph in columns: topics and sub-topologies, with their counts before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from kafka_rescale.core.page.carried import CarriedInput
from kafka_rescale.core.plan.plan import MoveKind, Plan
from kafka_rescale.core.topology.topology import SubTopology, Topology
from kafka_rescale.core.values import Value


class NodeKind(StrEnum):
    """The kind of a node of the graph."""

    INPUT = "input"
    OUTPUT = "output"
    REPARTITION = "repartition"
    BRIDGED = "bridged"
    SUBTOPOLOGY = "subtopology"


class StoreCount(Value):
    """A store and the partitions of its changelog.

    :param now: the partition count now. None if the changelog does not exist.
    :param then: the partition count after the expansion in progress. None if no expansion changes it.
    :param is_logged: whether the program logs the store. Without logging it has no changelog, and is not copied.
    """

    name: str
    now: int | None
    then: int | None
    is_logged: bool = True


class Node(Value):
    """A topic or a sub-topology.

    :param name: the name of a topic without the application id, or of a sub-topology. For an input, the topic that
        is read in its place.
    :param now: the partitions of a topic, or the tasks of a sub-topology. None if the topic does not exist.
    :param then: the same after the expansion in progress. None without an expansion, or if it changes nothing.
    :param stage: the index of the stage of an expansion that builds the topics of a sub-topology. None without
        such a stage.
    """

    id: str
    kind: NodeKind
    name: str
    column: int
    row: int
    now: int | None = None
    then: int | None = None
    stores: tuple[StoreCount, ...] = ()
    stage: int | None = None


class Graph(Value):
    """A graph with columns from the inputs to the outputs.

    :param edges: ``(from, to)``, by the ids of the nodes.
    """

    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]


def topology_graph(
    topology: Topology,
    counts: Mapping[str, int],
    plan: Plan | None = None,
    carried: Sequence[CarriedInput] = (),
) -> Graph:
    """Return the graph of a topology.

    :param counts: the present partition counts: of each topic, by its name in the topology, and of each store's
        changelog, by the name of the store.
    :param plan: the plan of the expansion in progress.
    :param carried: the inputs that are read under another name, or that have a bridge.
    """
    upstream_first = topology.downstream_first()[::-1]
    columns = _columns(topology, upstream_first)
    edges = _edges(topology)
    rows = _rows(columns, edges)
    after = _after(plan) if plan is not None else {}
    nodes = [
        _topic(topology, t, (columns[t], rows[t]), counts, after) for t in columns if not t.startswith(_PREFIX)
    ]
    nodes += [
        _subtopology(s, (columns[_id(s)], rows[_id(s)]), counts, after, _stage_of(plan, s)) for s in upstream_first
    ]
    return _with_bridges(Graph(nodes=tuple(nodes), edges=edges), carried)


def _with_bridges(graph: Graph, carried: Sequence[CarriedInput]) -> Graph:
    """Name each input by the topic that is read, and put the bridge's other topic before or behind the input."""
    reads = {each.declared: each.read for each in carried}
    nodes = [n.model_copy(update={"name": reads.get(n.id, n.name)}) for n in graph.nodes]
    edges = list(graph.edges)
    at = {n.id: n for n in nodes}
    rows = 1 + max((n.row for n in nodes), default=0)
    for each in (c for c in carried if c.old):
        is_read = each.read == each.old
        other, own = (each.new if is_read else each.old), at[each.declared]
        column = own.column + 1 if is_read else own.column - 1
        count = each.counts[1] if is_read else each.counts[0]
        name = f"bridge {other}"
        nodes.append(Node(id=name, kind=NodeKind.BRIDGED, name=other, column=column, row=rows, now=count))
        edges.append((own.id, name) if is_read else (name, own.id))
        rows += 1
    left = min((n.column for n in nodes), default=0)
    moved = tuple(n.model_copy(update={"column": n.column - left}) for n in nodes) if left < 0 else tuple(nodes)
    return Graph(nodes=moved, edges=tuple(edges))


_PREFIX = "sub-topology "


def _id(subtopology: SubTopology) -> str:
    return f"{_PREFIX}{subtopology.id}"


def _columns(topology: Topology, upstream_first: tuple[SubTopology, ...]) -> dict[str, int]:
    """Return the column of each node: the length of the longest way to it. Inputs stand before their first reader.

    The answers of foreign-key joins lead to a column before.
    """
    columns = dict.fromkeys(topology.inputs, 0)
    for each in upstream_first:
        column = 1 + max((columns[t] for t in each.sources if t in columns), default=0)
        columns[_id(each)] = column
        for sink in each.sinks:
            if sink not in topology.inputs:
                columns[sink] = max(columns.get(sink, 0), column + 1)
    first = {t: min(columns[_id(s)] for s in upstream_first if t in s.sources) for t in topology.inputs}
    return {**columns, **{topic: column - 1 for topic, column in first.items()}}


def _edges(topology: Topology) -> tuple[tuple[str, str], ...]:
    read = [(topic, _id(s)) for s in topology.subtopologies for topic in s.sources]
    written = [(_id(s), topic) for s in topology.subtopologies for topic in s.sinks]
    return tuple(dict.fromkeys([*read, *written]))


def _rows(columns: Mapping[str, int], edges: tuple[tuple[str, str], ...]) -> dict[str, int]:
    """Return the row of each node. The rows of the predecessors order a column, so that few edges cross."""
    rows: dict[str, int] = {}
    for column in range(max(columns.values(), default=0) + 1):
        here = [node for node, at in columns.items() if at == column]
        before = {node: [rows[a] for a, b in edges if b == node and a in rows] for node in here}
        here.sort(key=lambda node: sum(before[node]) / len(before[node]) if before[node] else 0)
        rows |= {node: row for row, node in enumerate(here)}
    return rows


def _after(plan: Plan) -> dict[str, int]:
    """Return the partition counts after an expansion, by the names of the topology."""
    grown = {g.topic: g.target for stage in plan.stages for g in stage.grow_outputs}
    inputs = {i.declared: i.target for i in plan.inputs}
    internal = {m.store: m.target_partitions for m in plan.moves if m.kind is not MoveKind.INPUT}
    return {**grown, **inputs, **internal}


def _topic(
    topology: Topology, name: str, at: tuple[int, int], counts: Mapping[str, int], after: Mapping[str, int]
) -> Node:
    inner = NodeKind.REPARTITION if name in topology.repartitions else NodeKind.OUTPUT
    kind = NodeKind.INPUT if name in topology.inputs else inner
    now = counts.get(name)
    return Node(id=name, kind=kind, name=name, column=at[0], row=at[1], now=now, then=_then(name, now, after))


def _subtopology(
    each: SubTopology, at: tuple[int, int], counts: Mapping[str, int], after: Mapping[str, int], stage: int | None
) -> Node:
    tasks = max((counts[t] for t in each.sources if t in counts), default=None)
    later = max((after.get(t, counts.get(t, 0)) for t in each.sources), default=None) if after else None
    return Node(
        id=_id(each),
        kind=NodeKind.SUBTOPOLOGY,
        name=_id(each),
        column=at[0],
        row=at[1],
        now=tasks,
        then=later if later != tasks else None,
        stores=(
            *(StoreCount(name=s, now=counts.get(s), then=_then(s, counts.get(s), after)) for s in each.stores),
            *(StoreCount(name=s, now=None, then=None, is_logged=False) for s in each.unlogged),
        ),
        stage=stage,
    )


def _then(name: str, now: int | None, after: Mapping[str, int]) -> int | None:
    then = after.get(name)
    return then if then != now else None


def _stage_of(plan: Plan | None, subtopology: SubTopology) -> int | None:
    stages = plan.stages if plan is not None else ()
    return next((s.index for s in stages if s.subtopology == subtopology.id), None)
