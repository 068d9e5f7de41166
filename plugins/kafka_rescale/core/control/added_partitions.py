"""Old topics that are grown while their bridges are at work: what has to be carried on before what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.core.values import Value


class Added(Value):
    """A growth of an old topic that its bridge has noticed.

    :param count: of its partitions since then.
    :param ends: of the partitions before, when it was noticed, open transactions included: up to there they are
        carried on before the new ones begin.
    :param begun: positions of the new partitions have been committed.
    """

    topic: str
    count: int
    ends: dict[int, int]
    begun: bool = False


@dataclass(frozen=True)
class Layout:
    """By which counts the keys of an old topic may lie.

    :param move: the bridge, with the newest count.
    :param earlier: the counts before it; producers know them until they refresh their metadata.
    """

    move: Move
    earlier: tuple[int, ...] = ()


@dataclass(frozen=True)
class Step:
    """What is carried on exactly so far before anything else goes on.

    :param ends: exclusive.
    :param layouts: by topic.
    """

    ends: dict[TopicPartition, int]
    layouts: dict[str, Layout]


def layouts(moves: Iterable[Move], added: Sequence[Added]) -> dict[str, Layout]:
    """Return how keys may lie in the old topics after some growths.

    :param moves: the plan's bridges.
    """
    return {move.source: _layout(move, [a.count for a in added if a.topic == move.source]) for move in moves}


def steps(journal: Journal, added: Sequence[Added]) -> Iterator[Step]:
    """Yield what comes before the rest, in order.

    First what the old partitions of an input that was grown before the expansion held at the promotion, placed by
    either count; then what every later growth has found. A record that lies by a count that its producer could not
    know yet is refused in each step: a key that had gone from one old partition to another would lose its order.

    :param journal: of an expansion that has been promoted.
    """
    moves = journal.plan.bridges
    held = {(m.source, p): journal.input_ends[m.source][p] for m in moves for p in range(m.earlier_partitions)}
    if held:
        yield Step(held, {m.source: Layout(m) for m in moves})
    for index, growth in enumerate(added):
        ends = {(growth.topic, partition): end for partition, end in growth.ends.items()}
        yield Step(ends, layouts(moves, added[:index]))


def _layout(move: Move, counts: Sequence[int]) -> Layout:
    """What lies by the count before the expansion has been carried on by then, and is refused from there on."""
    every = (move.source_partitions, *counts)
    return Layout(move.model_copy(update={"earlier_partitions": 0, "source_partitions": every[-1]}), every[:-1])
