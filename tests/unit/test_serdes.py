"""What a snapshot makes of declared bytes."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.serdes import serde_named
from kafka_rescale.spark.avro_types import arrow_type

RATE: dict[str, Any] = {
    "type": "record",
    "name": "Rate",
    "fields": [
        {"name": "count", "type": "long"},
        {"name": "mean", "type": ["null", "double"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "again", "type": "Kind"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "more", "type": {"type": "map", "values": "int"}},
    ],
}


def avro(value: Any, schema: Any) -> bytes:
    stream = io.BytesIO()
    schemaless_writer(stream, parse_schema(schema), value)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("serde", "data", "value"),
    [
        ("string", "Zürich".encode(), "Zürich"),
        ("long", b"\xff" * 8, -1),
        ("long", bytes(7) + b"\x2a", 42),
        ("json", b'{"a": [1]}', '{"a": [1]}'),
        ("avro:" + json.dumps("string"), avro("x", "string"), "x"),
        ("avro-confluent:" + json.dumps("long"), b"\x00\x00\x00\x00\x07" + avro(5, "long"), 5),
    ],
)
def test_bytes_are_decoded(serde: str, data: bytes, value: object) -> None:
    assert serde_named(serde).decode(data) == value


@pytest.mark.parametrize(
    ("serde", "data"),
    [
        ("string", b"\xff"),
        ("long", b"\x01"),
        ("json", b"{"),
        ("avro:" + json.dumps("string"), b"\x10x"),
        ("avro:" + json.dumps("long"), avro(5, "long") + b"x"),
        ("avro-confluent:" + json.dumps("long"), avro(5, "long")),
    ],
)
def test_bytes_of_another_serde_are_an_error(serde: str, data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        serde_named(serde).decode(data)


@pytest.mark.parametrize("text", ["utf8", "avro", "avro:", "protobuf:x"])
def test_an_unknown_serde_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="string, long, json, avro"):
        serde_named(text)


@pytest.mark.parametrize("schema", ["{", '"nothing"', '{"type": "record"}'])
def test_a_schema_that_is_none_is_refused(schema: str) -> None:
    with pytest.raises(InvalidInput, match="an Avro schema in JSON"):
        _ = serde_named(f"avro:{schema}").parsed_schema


def test_a_record_becomes_a_struct_that_holds_what_was_decoded() -> None:
    from datetime import UTC, datetime
    from decimal import Decimal

    value = {
        "count": 3,
        "mean": None,
        "tags": ["x"],
        "kind": "A",
        "again": "B",
        "at": datetime(2026, 1, 5, tzinfo=UTC),
        "price": Decimal("1.25"),
        "more": {"k": 1},
    }
    serde = serde_named(f"avro:{json.dumps(RATE)}")
    column = pa.array([serde.decode(avro(value, RATE))], arrow_type(serde.parsed_schema))
    assert column.to_pylist() == [{**value, "more": [("k", 1)]}]


@pytest.mark.parametrize(
    "schema",
    [
        ["string", "long"],
        {"type": "record", "name": "Tree", "fields": [{"name": "left", "type": ["null", "Tree"]}]},
    ],
)
def test_a_schema_without_one_type_is_told(schema: Any) -> None:
    with pytest.raises(ValueError, match=r"column can't hold|refers to itself"):
        arrow_type(parse_schema(schema))
