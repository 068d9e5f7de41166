"""Lifecycle by a class of the user, for deployments that have an API."""

from __future__ import annotations

from kafka_rescale.core.callables import named
from kafka_rescale.core.declared_lifecycles import PythonLifecycle
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.lifecycle.instance import Lifecycle


def load(spec: PythonLifecycle) -> Lifecycle:
    """Return an instance of the class that ``callable: module:Name`` names.

    :raises InvalidInput: it can't be imported or lacks one of the three methods.
    """
    made_by = named("lifecycle", spec.callable, "an importable class without constructor arguments")
    try:
        made: Lifecycle = made_by()
    except TypeError as error:
        raise InvalidInput(
            f"lifecycle {spec.callable!r}",
            found=str(error),
            expected="a class without constructor arguments",
            remedy="Read what it needs from the environment instead.",
        ) from error
    missing = [m for m in ("start", "stop", "is_running") if not callable(getattr(made, m, None))]
    if missing:
        raise InvalidInput(
            f"lifecycle {spec.callable!r}",
            found=f"no method {', '.join(missing)}",
            expected="start(instance), stop(instance) and is_running(instance) -> bool",
            remedy="See kafka_rescale.lifecycle.instance.Lifecycle.",
        )
    return made
