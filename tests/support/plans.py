"""Plans for tests of code that carries a plan but doesn't look into it."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_rescale.core.application.streams import Application, Mode
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.operations.application.load import topology_of

from tests.support.application_files import CHAIN

IN_PLACE_TOPICS = (
    "by-customer-repartition",
    "by-region-repartition",
    "per-customer-changelog",
    "per-region-changelog",
)


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


def in_place_plan(
    current: int = 4,
    target: int = 8,
    *,
    running: str = "orders-app",
    generation: int = 2,
    grown_from: Mapping[str, tuple[int, ...]] | None = None,
) -> Plan:
    """The plan of an expansion in place of the chain of ``application_files``.

    :param running: its ``application.id``.
    :param grown_from: see ``build_plan``.
    """
    application = in_place_application()
    counts = {f"{running}-{name}": current for name in IN_PLACE_TOPICS} | {"orders": current, "totals": current}
    return build_plan(
        application,
        topology_of(application),
        blue=running,
        generation=generation,
        current=counts,
        target=target,
        grown_from=grown_from,
    )


def stateless_plan(mode: Mode = Mode.IN_PLACE, current: int = 4, target: int = 8) -> Plan:
    """The plan of a program that only filters and maps: it has an input and an output, and no internal topic."""
    fields = {"subtopologies": [{"sources": ["orders"], "sinks": ["totals"]}], "stores": [], "mode": mode}
    application = Application.model_validate({**CHAIN, **fields})
    return build_plan(
        application,
        topology_of(application),
        blue="orders-app",
        generation=2,
        current={"orders": current, "totals": current},
        target=target,
    )


def in_place_application() -> Application:
    """The chain of ``application_files`` with mode ``in_place``."""
    return Application.model_validate({**CHAIN, "mode": "in_place"})
