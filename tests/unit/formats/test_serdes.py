"""The values that a snapshot makes of bytes with a declared format."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.formats.serdes import serde_named
from kafka_rescale.core.pipeline import avro as pipeline_avro
from kafka_rescale.spark.snapshots.avro_types import arrow_type

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


OLD = {
    "type": "record",
    "name": "Total",
    "fields": [{"name": "net", "type": "long"}, {"name": "gross", "type": "long"}],
}
NEW = {
    "type": "record",
    "name": "Total",
    "fields": [
        {"name": "gross", "type": "long"},
        {"name": "net", "type": "long"},
        {"name": "currency", "type": "string", "default": "CHF"},
    ],
}


def framed(number: int, value: Any, schema: Any) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + avro(value, schema)


class TestSeveralSchemasOfARegistry:
    SERDE = serde_named(f"avro-confluent:17={json.dumps(OLD)}, 23={json.dumps(NEW)}")

    def test_each_value_is_read_by_the_schema_that_wrote_it(self) -> None:
        assert self.SERDE.decode(framed(17, {"net": 1, "gross": 2}, OLD)) == {
            "gross": 2,
            "net": 1,
            "currency": "CHF",
        }
        new = {"gross": 2, "net": 1, "currency": "EUR"}
        assert self.SERDE.decode(framed(23, new, NEW)) == new
        assert self.SERDE.decode(self.SERDE.encode(new)) == new

    def test_read_by_the_newest_alone_it_would_be_wrong(self) -> None:
        swapped = {**NEW, "fields": NEW["fields"][:2]}
        value = framed(17, {"net": 1, "gross": 2}, OLD)
        assert serde_named(f"avro-confluent:{json.dumps(swapped)}").decode(value) == {"gross": 1, "net": 2}

    def test_one_that_is_not_declared_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="schema id 31, of which no schema is declared"):
            self.SERDE.decode(framed(31, {"net": 1, "gross": 2}, OLD))
        with pytest.raises(ValueError, match="no frame"):
            self.SERDE.decode(avro({"net": 1, "gross": 2}, OLD))

    @pytest.mark.parametrize("text", ['17="long",17="int"', '17="long",', "17=", '17="long" 23="int"'])
    def test_what_is_no_list_of_schemas_is_refused(self, text: str) -> None:
        with pytest.raises(InvalidInput, match="each id once"):
            serde_named(f"avro-confluent:{text}")

    def test_a_pipeline_reads_what_earlier_schemas_have_written_and_nothing_else(self) -> None:
        serde = pipeline_avro(json.dumps(NEW), registered_id=23, earlier={17: json.dumps(OLD)})
        assert serde.decode(framed(17, {"net": 1, "gross": 2}, OLD))["gross"] == 2
        with pytest.raises(ValueError, match="schema id 31"):
            serde.decode(framed(31, {"net": 1, "gross": 2}, OLD))
        with pytest.raises(InvalidInput, match="no registered_id"):
            pipeline_avro(json.dumps(NEW), earlier={17: json.dumps(OLD)})

    def test_each_schema_is_looked_at(self) -> None:
        with pytest.raises(InvalidInput, match="an Avro schema in JSON"):
            serde_named('avro-confluent:17="nothing",23="long"').check()
