"""Plans for tests of everything that carries a plan but doesn't look into it."""

from __future__ import annotations

from kafka_rescale.core.plan import Plan


def plan_for(application: str, partitions: int = 8, generation: int = 2) -> Plan:
    """A plan without stages."""
    return Plan(
        application=application,
        generation=generation,
        blue=application,
        green=f"{application}-g{generation}",
        partitions=partitions,
        stages=(),
        inputs=(),
    )
