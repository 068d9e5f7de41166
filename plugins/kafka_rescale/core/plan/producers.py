"""How many producers write the copies of a plan: as many as the work needs, however many partitions there are.

A transactional producer costs a fifth of a second and several threads. A source partition costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka_rescale.core.plan.plan import Move, Plan, Stage

MOST_PRODUCERS = 64
"""Limit for all topics of one kind in one stage. A Spark job copies with at most so many tasks at a time."""


def with_producers(moves: Sequence[Move]) -> tuple[Move, ...]:
    """Return moves, in their order, with their numbers of producers.

    The moves of one kind have at most ``MOST_PRODUCERS`` together; if there are more moves than that, each has one
    producer. Small topics have a producer per partition, and larger topics share the rest evenly. The number of
    partitions says little about the amount of data. So among larger topics, more partitions don't mean more
    producers.

    :param moves: moves of one stage; the moves of one kind are copied at the same time.
    """
    most = {
        kind: _most([m.source_partitions for m in moves if m.kind is kind]) for kind in {m.kind for m in moves}
    }
    return tuple(m.model_copy(update={"producers": min(most[m.kind], m.source_partitions)}) for m in moves)


def _most(counts: Sequence[int]) -> int:
    """Return how many producers a topic may have beside the others.

    :param counts: partitions of each topic.
    """
    fitting = (n for n in range(1, MOST_PRODUCERS + 1) if sum(min(n, c) for c in counts) <= MOST_PRODUCERS)
    return max(fitting, default=1)


def after_rollback(plan: Plan, before: Plan) -> Plan:
    """Return a plan whose producers fence all producers of the attempts before it.

    Processes of those attempts may wake up late. If the plan before has a topic's copy, its number of producers is
    taken over. Otherwise the number is not known, and there is one producer per partition: fewer producers might
    not take over, and so fence, all transactional ids of the earlier attempts.

    :param before: the plan that was rolled back.
    """
    known = {m.source: m.producers for s in before.stages for m in (*s.moves, *s.bridges)}
    numbers = known if before.green == plan.green else {}
    return plan.model_copy(update={"stages": tuple(_with_numbers(stage, numbers) for stage in plan.stages)})


def _with_numbers(stage: Stage, numbers: Mapping[str, int]) -> Stage:
    moves, bridges = (
        tuple(m.model_copy(update={"producers": numbers.get(m.source, 0)}) for m in of)
        for of in (stage.moves, stage.bridges)
    )
    return stage.model_copy(update={"moves": moves, "bridges": bridges})
