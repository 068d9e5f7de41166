"""Old topics that grow while their bridges are at work: the order in which records have to be copied."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.core.values import Value


class Added(Value):
    """A growth of an old topic that its bridge has noticed.

    :param count: number of its partitions since then.
    :param ends: ends of the earlier partitions when the growth was noticed, open transactions included. The bridge
        copies these partitions up to there before it begins with the new ones.
    :param begun: whether positions of the new partitions have been committed.
    """

    topic: str
    count: int
    ends: dict[int, int]
    begun: bool = False


@dataclass(frozen=True)
class Layout:
    """The counts that may have placed the keys of an old topic.

    :param move: the bridge, with the newest count.
    :param earlier: earlier counts; producers use them until they refresh their metadata.
    """

    move: Move
    earlier: tuple[int, ...] = ()


@dataclass(frozen=True)
class Step:
    """A part of the copying: up to these ends exactly, before the next step begins.

    :param ends: exclusive.
    :param layouts: by topic.
    """

    ends: dict[TopicPartition, int]
    layouts: dict[str, Layout]


def layouts(moves: Iterable[Move], added: Sequence[Added]) -> dict[str, Layout]:
    """Return the layouts of keys that the old topics may have after some growths.

    :param moves: the plan's bridges.
    """
    return {move.source: _layout(move, [a.count for a in added if a.topic == move.source]) for move in moves}


def steps(journal: Journal, added: Sequence[Added], gone: Collection[str] = ()) -> Iterator[Step]:
    """Yield the steps that come before the rest, in order.

    If an input was grown before the expansion, the first step has the records of its old partitions at the
    promotion, which either count may have placed. Then every later growth has a step with the records that it
    found. In each step, a record is refused if it was placed by a count that its producer could not know yet: if
    its key had moved between old partitions, the key's records would lose their order.

    :param journal: journal of an expansion that has been promoted.
    :param gone: old topics that were deleted: no step waits for them.
    """
    moves = [m for m in journal.plan.bridges if m.source not in gone]
    added = [a for a in added if a.topic not in gone]
    held = {(m.source, p): journal.input_ends[m.source][p] for m in moves for p in range(m.earlier_partitions)}
    if held:
        yield Step(held, {m.source: Layout(m) for m in moves})
    for index, growth in enumerate(added):
        ends = {(growth.topic, partition): end for partition, end in growth.ends.items()}
        yield Step(ends, layouts(moves, added[:index]))


def _layout(move: Move, counts: Sequence[int]) -> Layout:
    """Return a layout. It refuses records placed by the count before the expansion: these are copied by then."""
    every = (move.source_partitions, *counts)
    return Layout(move.model_copy(update={"earlier_partitions": 0, "source_partitions": every[-1]}), every[:-1])
