"""What is known of an application once its new generation owns the inputs."""

from __future__ import annotations

from kafka_rescale.core.control_records import Generations
from kafka_rescale.core.plan import Plan


def promoted_generations(plan: Plan, before: Generations | None) -> Generations:
    """Return the generations after a plan's promotion.

    :param before: what was known until then; None before the first expansion.
    """
    left = {} if plan.is_in_place else {plan.blue: tuple(m.source for m in plan.moves)}
    return Generations(
        running=plan.green,
        generation=plan.generation,
        partitions=plan.partitions,
        previous=plan.blue,
        retired=before.retired if before else (),
        left={**(before.left if before else {}), **left},
        inputs={i.declared: i.green_topic for i in plan.inputs if i.green_topic != i.declared},
        grown_from=_grown_from(plan) if plan.is_in_place else {},
    )


def _grown_from(plan: Plan) -> dict[str, tuple[int, ...]]:
    """Return the earlier counts of every topic, those of this growth among them."""
    counts = {m.source: (*m.grown_from, *((m.source_partitions,) if m.grows else ())) for m in plan.moves}
    return {topic: earlier for topic, earlier in counts.items() if earlier}
