"""What is known of an application once its new generation owns the inputs."""

from __future__ import annotations

from kafka_rescale.core.control.generations import Generations, PastGeneration
from kafka_rescale.core.journal import Journal, PartitionOffsets
from kafka_rescale.core.plan import Plan


def promoted_generations(
    journal: Journal, before: Generations | None = None, begins: PartitionOffsets | None = None
) -> Generations:
    """Return the generations after an expansion's promotion.

    :param before: those that are known until then.
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
    )


def _past(journal: Journal, before: Generations) -> PastGeneration:
    captured = journal.captured
    return PastGeneration(
        running=before.running,
        generation=before.generation,
        since_ms=before.since_ms,
        until_ms=journal.pause_started_ms,
        committed=captured.committed if captured is not None else {},
        ends=captured.changelog_ends if captured is not None and journal.plan.is_in_place else {},
    )


def _grown_from(plan: Plan) -> dict[str, tuple[int, ...]]:
    """Return the earlier counts of every topic, those of this growth among them."""
    counts = {m.source: (*m.grown_from, *((m.source_partitions,) if m.grows else ())) for m in plan.moves}
    return {topic: earlier for topic, earlier in counts.items() if earlier}


def _grown_inputs(plan: Plan, before: Generations) -> dict[str, tuple[int, ...]]:
    """Return the earlier counts of every input, those of this growth among them."""
    grown = {i.topic: (*before.grown_inputs.get(i.topic, ()), i.current) for i in plan.inputs if i.grows}
    return {**before.grown_inputs, **grown}
