"""Preflight: counts that the text of a topology leaves open, so green might not be able to start.

The planned count of a repartition topic must be the count that Kafka Streams derives. Otherwise green refuses to
start.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.application.checks.lifecycle import starts_with_count
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.core.plan.planning import target_counts
from kafka_rescale.core.preflight.counts import how_to_declare
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.topology.partition_counts import counts_if_merged, possible_counts
from kafka_rescale.core.topology.topology import REPARTITION_SUFFIX


def undecided_counts(situation: Situation) -> Iterator[Finding]:
    """Yield repartition topics for which several counts are possible after the expansion."""
    target = situation.target
    possible = possible_counts(
        situation.topology,
        target_counts(situation.application, situation.actual_counts, target),
        situation.application.enforced_counts(target, situation.actual_counts),
        _known_to_be_joined(situation),
    )
    for topic, counts in sorted(possible.items()):
        if len(counts) > 1:
            found, remedy = _reason(situation, topic)
            yield Finding(
                f"topic {situation.full_name(topic)!r} after the expansion to {target}",
                f"{' or '.join(map(str, sorted(counts)))} partitions, {found}",
                "one count that Kafka Streams derives in any case, as it refuses to start with another",
                remedy,
            )


def maybe_enforced(situation: Situation) -> Iterator[str]:
    """Yield repartition topics that would change their count, if the file does not say who sets it.

    A count that differs from the derived count shows that the program sets it. If both are equal today, nothing
    shows it.
    """
    plan = _plan(situation)
    for move in _repartitions(plan):
        if _would_change_unsaid(situation, move):
            yield (
                f"{move.source}: goes from {move.source_partitions} to {move.target_partitions} partitions only "
                "if the program leaves its count to Kafka Streams. If it sets it (withNumberOfPartitions), the "
                "application can't start again after the promotion: "
                f"{how_to_declare(move.store.removesuffix(REPARTITION_SUFFIX))}. "
                f"If it does not, say so by `count: derived`.{_shown_by_gate(plan)}"
            )


def maybe_told(situation: Situation) -> Iterator[str]:
    """Yield repartition topics that get another count than the start command tells the program.

    A program may need ``{partitions}`` for something else, so this is no finding. If another topic is declared
    with ``start_command``, that one explains the placeholder, and a ``fixed`` beside it was declared on purpose.
    """
    application, plan = situation.application, _plan(situation)
    starts, set_by_start = starts_with_count(application), application.repartitions_of_start_command
    on_purpose = {r.topic for r in application.repartitions if r.count == "fixed"} if set_by_start else set()
    for move in _repartitions(plan) if starts else ():
        is_other = move.target_partitions != plan.partitions and move.store not in {*set_by_start, *on_purpose}
        if is_other and not _would_change_unsaid(situation, move):
            name = move.store.removesuffix(REPARTITION_SUFFIX)
            yield (
                f"{move.target}: gets {move.target_partitions} partitions, while `{starts[0]}` tells the program "
                f"{plan.partitions} by {{partitions}}. If the program takes the count of this topic from it "
                "(withNumberOfPartitions), the application can't start again after the promotion: declare "
                f"`{{name: {name}, count: start_command}}`. If it does not, nothing has to be done."
                f"{_shown_by_gate(plan)}"
            )


def _plan(situation: Situation) -> Plan:
    journal = situation.control.journal
    return journal.plan if journal is not None and journal.in_progress else situation.plan


def _repartitions(plan: Plan) -> Iterator[Move]:
    """Yield the moves of repartition topics. The program can't set the counts of foreign-key joins' topics."""
    yield from (move for move in plan.repartitions if move.store.endswith(REPARTITION_SUFFIX))


def _would_change_unsaid(situation: Situation, move: Move) -> bool:
    changes = move.source_partitions != move.target_partitions
    return changes and move.store not in situation.application.explained_repartitions


def _shown_by_gate(plan: Plan) -> str:
    return "" if plan.is_in_place else " `start_gated` starts it on this count before the pause."


def _known_to_be_joined(situation: Situation) -> set[str]:
    """Return the repartition topics that are declared as joined, or whose count only a join explains."""
    merged = counts_if_merged(situation.topology, situation.external_counts, situation.enforced_now)
    said = {r.topic for r in situation.application.repartitions if r.count == "joined"}
    by_count = (t for t in situation.topology.repartitions if all(situation.counts[t] != c.get(t) for c in merged))
    return said.union(by_count)


def _reason(situation: Situation, topic: str) -> tuple[str, str]:
    own_sources, subtopologies = situation.topology.own_sources, situation.topology.subtopologies
    joining = [s for s in subtopologies if topic in s.sinks and len(own_sources(s)) < len(s.sources)]
    by_program = (
        "or set its count in the program (withNumberOfPartitions), and "
        f"{how_to_declare(topic.removesuffix(REPARTITION_SUFFIX))}."
    )
    if joining:
        return (
            f"as sub-topology {joining[0].id}, which writes it, takes part in a foreign-key join",
            f"Let both tables of the join, and all that is merged, end with equal counts, {by_program}",
        )
    reader = next(s for s in subtopologies if topic in s.sources)
    return (
        f"as sub-topology {reader.id} may join or merge {', '.join(sorted(reader.sources))}",
        "If they are joined, and not by KStream#merge, declare "
        f"`{{name: {topic.removesuffix(REPARTITION_SUFFIX)}, count: joined}}`. Else let all inputs that lead "
        f"to this sub-topology grow (`policy: paused` or `unkeyed`), or none (`fixed`), {by_program}",
    )
