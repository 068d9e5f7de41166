"""The generations of an application: the running one and those before it."""

from __future__ import annotations

from pydantic import Field

from kafka_rescale.core.control.journal import Captured, Journal, PartitionOffsets
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.values import Value


class PastGeneration(Value):
    """A generation that has run.

    :param running: its ``application.id``.
    :param since_ms: as in ``Generations``.
    :param until_ms: wall clock when it was asked to stop for good.
    :param committed: where it stopped reading its inputs.
    :param ends: exclusive ends of its changelogs, if these have become changelogs of the next generation.
    :param in_flight: where it stopped reading its repartition topics. Empty if the next generation has taken these
        over, because it deletes the records that it has processed.
    """

    running: str
    generation: int
    since_ms: int
    until_ms: int
    committed: PartitionOffsets = Field(default_factory=dict)
    ends: PartitionOffsets = Field(default_factory=dict)
    in_flight: PartitionOffsets = Field(default_factory=dict, exclude_if=lambda of: not of)


class Generations(Value):
    """The incarnations of an application: ``running`` is the ``application.id`` that owns the inputs.

    :param inputs: topics that the running generation reads instead of repartitioned inputs, by the name in the
        file.
    :param grown_from: counts that internal topics of the running generation had before they were grown in place.
    :param grown_inputs: counts that inputs had before expansions grew them. Records that were processed before
        still lie where these counts have placed them.
    :param retired: earlier generations whose topics have been deleted.
    :param left: internal topics of earlier generations that have not been retired.
    :param since_ms: wall clock when the previous generation was asked to stop; 0 if unknown, and for the first
        generation.
    :param past: the earlier generations, the oldest first, as far as they are known.
    :param begins: log starts of changelogs that did not begin at 0, because a copy into them was begun anew.
    :param copied: ends (exclusive) of what expansions have copied to topics of the running generation. Written
        when the next expansion replaces the journal of the last one.
    """

    running: str
    generation: int = 1
    partitions: int = 0
    retired: tuple[str, ...] = ()
    previous: str = ""
    inputs: dict[str, str] = Field(default_factory=dict)
    grown_from: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    grown_inputs: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    left: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    since_ms: int = 0
    past: tuple[PastGeneration, ...] = ()
    begins: PartitionOffsets = Field(default_factory=dict)
    copied: PartitionOffsets = Field(default_factory=dict, exclude_if=lambda of: not of)


def promoted_generations(
    journal: Journal, before: Generations | None = None, begins: PartitionOffsets | None = None
) -> Generations:
    """Return the generations after an expansion's promotion.

    :param before: the generations before the promotion.
    :param begins: log starts of the new generation's topics.
    """
    plan = journal.plan
    before = before or Generations(running=plan.blue)
    late = {m.target: {p: o for p, o in (begins or {}).get(m.target, {}).items() if o} for m in plan.changelogs}
    left = {} if plan.is_in_place else {plan.blue: tuple(m.source for m in plan.moves)}
    return Generations(
        running=plan.green,
        generation=plan.generation,
        partitions=plan.partitions,
        previous=plan.blue,
        retired=before.retired,
        left={**before.left, **left},
        inputs={i.declared: i.green_topic for i in plan.inputs if i.green_topic != i.declared},
        grown_from=_grown_from(plan) if plan.is_in_place else {},
        grown_inputs=_grown_inputs(plan, before),
        since_ms=journal.pause_started_ms,
        past=(*before.past, _past(journal, before)),
        begins={**before.begins, **{topic: of for topic, of in late.items() if of}},
        copied=before.copied if plan.is_in_place else {},
    )


def _past(journal: Journal, before: Generations) -> PastGeneration:
    captured = journal.captured or Captured()
    is_in_place = journal.plan.is_in_place
    return PastGeneration(
        running=before.running,
        generation=before.generation,
        since_ms=before.since_ms,
        until_ms=journal.pause_started_ms,
        committed=captured.committed,
        ends=captured.changelog_ends if is_in_place else {},
        in_flight={} if is_in_place else captured.in_flight_starts,
    )


def _grown_from(plan: Plan) -> dict[str, tuple[int, ...]]:
    """Return the earlier counts of every topic, including those before this growth."""
    counts = {m.source: (*m.grown_from, *((m.source_partitions,) if m.grows else ())) for m in plan.moves}
    return {topic: earlier for topic, earlier in counts.items() if earlier}


def _grown_inputs(plan: Plan, before: Generations) -> dict[str, tuple[int, ...]]:
    """Return the earlier counts of every input, including those before this growth."""
    grown = {i.topic: (*before.grown_inputs.get(i.topic, ()), i.current) for i in plan.inputs if i.grows}
    return {**before.grown_inputs, **grown}
