"""The mode of an expansion: its plan tells it, whatever the application file says by now."""

from __future__ import annotations

from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.operations.modes.blue_green import BlueGreen
from kafka_rescale.operations.modes.in_place import InPlace
from kafka_rescale.operations.modes.steps import ModeSteps

BLUE_GREEN, IN_PLACE = BlueGreen(), InPlace()


def mode_of(plan: Plan) -> ModeSteps:
    """Return the steps of the mode that an expansion was begun with."""
    return IN_PLACE if plan.is_in_place else BLUE_GREEN
