"""The chain of ``application_files`` after two expansions. No earlier generation was retired."""

from __future__ import annotations

from typing import Any

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.generations import Generations, promoted_generations
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan, green_application_id
from kafka_rescale.operations.application.load import topology_of

from tests.support.application_files import CHAIN
from tests.support.plans import IN_PLACE_TOPICS as INTERNAL


def chain(name: str, **changes: Any) -> Application:
    """Return the chain under a name, with an input and an output of its own."""
    text = {"application_id": name, "inputs": [{"topic": f"{name}-orders", "policy": "unkeyed"}]}
    subtopologies = [
        {**s, "sources": [f"{name}-orders" if t == "orders" else t for t in s["sources"]]}
        for s in CHAIN["subtopologies"]
    ]
    return Application.model_validate({**CHAIN, **text, "subtopologies": subtopologies, **changes})


def internal_topics(application_id: str) -> list[str]:
    """Return the internal topics of a generation, in order."""
    return [f"{application_id}-{topic}" for topic in INTERNAL]


def plan_of(application: Application, generation: int, blue: str = "") -> Plan:
    """Return the plan that leads to a generation.

    :param blue: the running one, if it isn't the generation before.
    """
    blue = blue or green_application_id(application.application_id, generation - 1)
    counts = dict.fromkeys((*internal_topics(blue), application.inputs[0].topic, "totals"), 4 * (generation - 1))
    return build_plan(
        application,
        topology_of(application),
        blue=blue,
        generation=generation,
        current=counts,
        target=4 * generation,
    )


def after(*plans: Plan, phase: Phase = Phase.COMPLETE) -> ControlState:
    """Return the generations and journals that are known after these expansions."""
    generations: Generations | None = None
    for plan in plans:
        generations = promoted_generations(Journal(plan=plan), generations)
    return ControlState(journal=Journal(plan=plans[-1], phase=phase), generations=generations)
