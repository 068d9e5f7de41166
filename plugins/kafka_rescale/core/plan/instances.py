"""The instance sets of a plan's two generations."""

from __future__ import annotations

from kafka_rescale.core.application.instance import Instance
from kafka_rescale.core.plan.plan import Plan


def blue(plan: Plan) -> Instance:
    """Return the running generation's instance set."""
    inputs = {i.declared: i.topic for i in plan.inputs}
    return Instance(plan.blue, plan.generation - 1, plan.partitions_before, inputs)


def green(plan: Plan) -> Instance:
    """Return the new generation's instance set."""
    return Instance(plan.green, plan.generation, plan.partitions, {i.declared: i.green_topic for i in plan.inputs})
