"""Lifecycle by a class of the user, for deployments that have an API."""

from __future__ import annotations

import importlib

from kafka_rescale.core.application import PythonLifecycle
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.lifecycle.instance import Lifecycle


def load(spec: PythonLifecycle) -> Lifecycle:
    """Return an instance of the class that ``callable: module:Name`` names.

    :raises InvalidInput: it can't be imported or lacks one of the three methods.
    """
    module_name, _, name = spec.callable.partition(":")
    try:
        made: Lifecycle = getattr(importlib.import_module(module_name), name)()
    except (ImportError, AttributeError, TypeError) as error:
        raise InvalidInput(
            f"lifecycle {spec.callable!r}",
            found=str(error),
            expected="an importable class without constructor arguments",
            remedy="Put its module on PYTHONPATH of the Airflow workers.",
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
