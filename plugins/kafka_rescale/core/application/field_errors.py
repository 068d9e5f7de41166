"""pydantic's errors in words for a person who edits an application file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from kafka_rescale.core.application.autoscaling import Bounds
from kafka_rescale.core.application.clients import DeclaredClient
from kafka_rescale.core.application.lifecycles import ManualLifecycle, PythonLifecycle, ShellLifecycle
from kafka_rescale.core.application.mistakes import Location, Mistake, WrongValue
from kafka_rescale.core.application.notifications import Notification
from kafka_rescale.core.application.pacing import Pacing
from kafka_rescale.core.application.pipeline import DeclaredBackfill
from kafka_rescale.core.application.snapshots import Snapshots, StoreSnapshot
from kafka_rescale.core.application.stores import Store
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import Input, Output, Producers, Repartition, SubTopologySpec
from kafka_rescale.core.application.windows import CutoverWindows

_MODELS: dict[tuple[str, ...], type[BaseModel]] = {
    ("inputs",): Input,
    ("inputs", "producers"): Producers,
    ("outputs",): Output,
    ("stores",): Store,
    ("repartitions",): Repartition,
    ("subtopologies",): SubTopologySpec,
    ("autoscaling_bounds",): Bounds,
    ("cutover_windows",): CutoverWindows,
    ("notifications",): Notification,
    ("pacing",): Pacing,
    ("snapshots",): Snapshots,
    ("snapshots", "stores"): StoreSnapshot,
    ("lifecycle", "shell"): ShellLifecycle,
    ("lifecycle", "python"): PythonLifecycle,
    ("lifecycle", "manual"): ManualLifecycle,
    ("clients",): DeclaredClient,
    ("backfill",): DeclaredBackfill,
}

_DATE = "a date such as 2026-01-31"
_EXPECTED = {
    "string_type": "a text",
    "string_pattern_mismatch": "a text that matches {pattern}",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "date_type": _DATE,
    "date_parsing": _DATE,
    "date_from_datetime_parsing": _DATE,
    "date_from_datetime_inexact": _DATE,
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "too_short": "at least {min_length} entry",
    "string_too_long": "at most {max_length} characters",
    "enum": "{expected}",
    "literal_error": "{expected}",
    "union_tag_not_found": "a field `type` with shell, python or manual",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "fields with values",
    "model_type": "fields with values",
    "model_attributes_type": "fields with values",
}
_ANY_OTHER = "a value that this field takes"
_LOOK_IT_UP = "See `docs/reference.md`."


def mistakes_of(error: ValidationError, root: type[BaseModel] = Application) -> list[Mistake]:
    """Return one mistake per error of a validation, in the order of the fields.

    :param root: the model of the whole file.
    """
    errors: list[dict[str, Any]] = [dict(e) for e in error.errors(include_url=False)]
    # A list whose entries are all wrong is also reported as empty.
    around: set[Location] = {e["loc"][:n] for e in errors for n in range(1, len(e["loc"]))}
    return [_mistake(e, root) for e in errors if e["type"] != "too_short" or e["loc"] not in around]


def _mistake(error: Mapping[str, Any], root: type[BaseModel]) -> Mistake:
    location: Location = tuple(error["loc"])
    kind, context = error["type"], error.get("ctx", {})
    if kind == "invalid_key" or location[-1:] == ("[key]",):
        return _wrong_name(location, error["input"], _EXPECTED.get(kind, "a field name").format(**context))
    if kind == "missing":
        field = location[-1]
        return Mistake(location[:-1], f"no field `{field}`", f"a field `{field}`", f"Add `{field}:`.")
    if kind == "extra_forbidden":
        return _unknown_field(location, root)
    if kind == "value_error":
        return _from_validator(location, context["error"])
    if kind == "union_tag_invalid":
        return Mistake((*location, "type"), repr(context["tag"]), context["expected_tags"], "Correct the value.")
    return _wrong_value(location, kind, error["input"], context)


def _wrong_value(location: Location, kind: str, value: object, context: Mapping[str, Any]) -> Mistake:
    if kind not in _EXPECTED:
        return Mistake(location, shown(value), _ANY_OTHER, _LOOK_IT_UP)
    remedy = _quoted(value) if kind == "string_type" else "Correct the value."
    return Mistake(location, shown(value), _EXPECTED[kind].format(**context), remedy)


def _wrong_name(location: Location, name: Any, expected: str) -> Mistake:
    """Return the mistake in a field's name. pydantic writes 1 or 0 for a boolean, and ``[key]`` behind a name."""
    around = location[:-2] if location[-1] == "[key]" else location[:-1]
    found = f"the field {'null' if name is None else shown(name)}"
    if isinstance(name, bool):
        found += ": YAML reads on, off, yes and no as booleans"
    remedy = "Correct the name." if isinstance(name, str) else "Quote it."
    return Mistake((*around, name), found, expected, remedy)


def _quoted(value: object) -> str:
    """Suggest how to turn a value into a text. If YAML may have parsed it differently, only say "Quote it."."""
    if type(value) is int:
        return f'Quote it: "{value}".'
    return "Quote it." if isinstance(value, bool | float | date) else "Correct the value."


def _unknown_field(location: Location, root: type[BaseModel]) -> Mistake:
    path = tuple(part for part in location[:-1] if isinstance(part, str))
    model = root if path == () else _MODELS.get(path)
    fields = model.model_fields.items() if model is not None else ()
    known = sorted(field.alias or name for name, field in fields)
    near = get_close_matches(str(location[-1]), known, n=1)
    return Mistake(
        location,
        f"the unknown field `{location[-1]}`",
        f"one of {', '.join(known)}",
        f"Did you mean `{near[0]}`?" if near else "Delete it.",
    )


def _from_validator(location: Location, error: ValueError) -> Mistake:
    """Return what a validator complains about. Our validators give all parts; a library's give one sentence."""
    if isinstance(error, WrongValue):
        return Mistake.of(location, error.complaint)
    return Mistake(location, str(error), _ANY_OTHER, _LOOK_IT_UP)


def shown(value: object) -> str:
    """Return a value for a message; a long value is cut."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value) if isinstance(value, date) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
