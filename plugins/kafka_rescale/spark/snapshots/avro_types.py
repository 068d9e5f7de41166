"""The Arrow type for an Avro schema."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa

_PRIMITIVES: dict[str, Any] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL: dict[str, Any] = {
    "int-date": pa.date32(),
    "int-time-millis": pa.time32("ms"),
    "long-time-micros": pa.time64("us"),
    "long-timestamp-millis": pa.timestamp("ms", tz="UTC"),
    "long-timestamp-micros": pa.timestamp("us", tz="UTC"),
    "long-local-timestamp-millis": pa.timestamp("ms"),
    "long-local-timestamp-micros": pa.timestamp("us"),
    "string-uuid": pa.string(),
}
"""Logical types with the type that they annotate, as fastavro has them. On other types they must be ignored."""


def arrow_value(value: Any) -> Any:
    """Return a value that fastavro has decoded, in a form that Arrow takes: UUIDs become text."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, dict):
        return {name: arrow_value(inner) for name, inner in value.items()}
    return [arrow_value(inner) for inner in value] if isinstance(value, list) else value


def arrow_type(schema: Any) -> Any:
    """Return the Arrow type for the values that fastavro decodes with a schema.

    :param schema: the schema as parsed by fastavro.
    :raises ValueError: the schema has a union of several types, or a type that refers to itself. A column has one
        type.
    """
    return _type(schema, {})


def _type(schema: Any, named: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return _union(schema, named)
    if isinstance(schema, str):
        if schema not in _PRIMITIVES and schema not in named:
            raise ValueError(f"the type {schema} refers to itself or is unknown")
        return named.get(schema) or _PRIMITIVES[schema]
    found = _logical(schema) or _complex(schema, named)
    if "name" in schema:
        named[schema["name"]] = found
    return found


def _logical(schema: Any) -> Any | None:
    annotated = f"{schema['type']}-{schema.get('logicalType', '')}"
    if annotated in {"bytes-decimal", "fixed-decimal"}:
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    return _LOGICAL.get(annotated)


def _complex(schema: Any, named: dict[str, Any]) -> Any:
    kind = schema["type"]
    if kind == "array":
        return pa.list_(_type(schema["items"], named))
    if kind == "map":
        return pa.map_(pa.string(), _type(schema["values"], named))
    return _record(schema, named) if kind == "record" else _type(kind, named)


def _record(schema: Any, named: dict[str, Any]) -> Any:
    return pa.struct([(field["name"], _type(field["type"], named)) for field in schema["fields"]])


def _union(branches: list[Any], named: dict[str, Any]) -> Any:
    real = [branch for branch in branches if branch != "null"]
    if len(real) > 1:
        raise ValueError("a union of several types, which a column can't hold")
    return _type(real[0], named) if real else pa.null()
