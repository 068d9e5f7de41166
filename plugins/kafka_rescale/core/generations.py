"""What is known of an application once its new generation owns the inputs."""

from __future__ import annotations

from kafka_rescale.core.control_records import Generations
from kafka_rescale.core.plan import Plan


def promoted_generations(plan: Plan) -> Generations:
    """Return the generations after a plan's promotion."""
    return Generations(
        running=plan.green,
        generation=plan.generation,
        partitions=plan.partitions,
        previous=plan.blue,
        inputs={i.declared: i.green_topic for i in plan.inputs if i.green_topic != i.declared},
        grown_from=_grown_from(plan) if plan.is_in_place else {},
    )


def _grown_from(plan: Plan) -> dict[str, tuple[int, ...]]:
    """Return the earlier counts of every topic, those of this growth among them."""
    counts = {m.source: (*m.grown_from, *((m.source_partitions,) if m.grows else ())) for m in plan.moves}
    return {topic: earlier for topic, earlier in counts.items() if earlier}
