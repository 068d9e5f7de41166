"""The public parameters of the operators, the sensor and the trigger."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from scripts.reference_of_models import documented

PACKAGES = ("operators", "sensors", "triggers")


Row = tuple[str, str, str]


def operators() -> Iterator[Row]:
    """Yield each class that a DAG can use, followed by its own parameters: name, default, description."""
    for package in PACKAGES:
        path = f"kafka_rescale.airflow.{package}"
        for module in sorted(m.name for m in pkgutil.iter_modules(import_module(path).__path__)):
            for name, found in inspect.getmembers(import_module(f"{path}.{module}"), inspect.isclass):
                if found.__module__ == f"{path}.{module}" and name.endswith(("Operator", "Sensor", "Trigger")):
                    yield (
                        f"**`{package}.{module}.{name}`**",
                        f"from `{found.__mro__[1].__name__}`",
                        documented(found).summary,
                    )
                    yield from _parameters(found)


def _parameters(found: Any) -> Iterator[Row]:
    if "__init__" not in vars(found):
        return
    described, templated = documented(found).params, set(getattr(found, "template_fields", ()))
    # Airflow wraps constructors. Read the signature of the constructor that is wrapped.
    for parameter in inspect.signature(inspect.unwrap(found.__init__)).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            text = described.get(parameter.name, "").replace(" (templated)", "")
            mark = "; templated" if parameter.name in templated else ""
            yield f"`{parameter.name}`", _default(parameter), text + mark


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return "required"
    return "" if parameter.default is None else f"`{parameter.default}`"
