"""Serdes: string, long, JSON, and Avro with or without a schema registry's frame.

A serde reads and writes the bytes of Kafka's ``StringSerializer`` (UTF-8), of ``LongSerializer`` (8 bytes,
big-endian), of any JSON serializer in UTF-8, or of Avro's binary encoding. Avro may have the five bytes of a
schema registry in front.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.formats.avro_schemas import FRAME_BYTES, MAGIC, NUMBERED, numbered, parsed, schema_id

NONE = ""
STRING, LONG, JSON, AVRO, AVRO_CONFLUENT = "string", "long", "json", "avro", "avro-confluent"
_PLAIN = (NONE, STRING, LONG, JSON)


@dataclass(frozen=True)
class Serde:
    """One declared serde. It parses its schema when it first needs it.

    :param kind: its name without the schema.
    :param schema: the schema of an Avro serde, as JSON text.
    :param registered_id: the id of the schema in a registry, for the frame that is written. If it is given, a
        frame with an unknown id is an error. If not, every frame counts as a frame of ``schema``.
    :param earlier: other schemas by their registered ids, as JSON text. Values of these schemas are read as
        ``schema`` by Avro's rules of schema resolution.
    """

    kind: str
    schema: str = ""
    registered_id: int | None = None
    earlier: tuple[tuple[int, str], ...] = ()

    def decode(self, data: bytes) -> Any:
        """Return the value of bytes: a text (also for JSON), a number, or a value of an Avro schema.

        :raises ValueError: this serde can't read the bytes.
        """
        return self._decoder(data)

    def encode(self, value: Any) -> bytes:
        """Return the bytes from which ``decode`` makes this value.

        :raises ValueError: the serde can't encode the value.
        """
        return self._encoder(value)

    @cached_property
    def _encoder(self) -> Callable[[Any], bytes]:
        if self.kind == LONG:
            return _long_bytes
        if self.kind in {AVRO, AVRO_CONFLUENT}:
            return self._avro_encoder()
        return str.encode

    @cached_property
    def _decoder(self) -> Callable[[bytes], Any]:
        if self.kind == LONG:
            return _long
        if self.kind == JSON:
            return _json
        if self.kind in {AVRO, AVRO_CONFLUENT}:
            return self._avro_decoder()
        return bytes.decode

    @cached_property
    def parsed_schema(self) -> Any:
        """The Avro schema as fastavro has it, with its named types resolved."""
        return parsed(self.schema)

    @cached_property
    def _writers(self) -> dict[int, Any]:
        """The known schemas by their registered id, parsed."""
        if self.registered_id is None:
            return {}
        return {number: parsed(schema) for number, schema in self.earlier} | {
            self.registered_id: self.parsed_schema
        }

    def check(self) -> None:
        """Parse every schema.

        :raises InvalidInput: a text is no schema.
        """
        for schema in filter(None, (self.schema, *(earlier for _, earlier in self.earlier))):
            parsed(schema)

    def _avro_encoder(self) -> Callable[[Any], bytes]:
        from fastavro import schemaless_writer

        frame = b"" if self.registered_id is None else MAGIC + self.registered_id.to_bytes(4, "big")

        def encode(value: Any) -> bytes:
            stream = io.BytesIO()
            stream.write(frame)
            try:
                schemaless_writer(stream, self.parsed_schema, value)
            except Exception as error:
                raise ValueError(f"not of the schema: {type(error).__name__}") from None
            return stream.getvalue()

        return encode

    def _avro_decoder(self) -> Callable[[bytes], Any]:
        from fastavro import schemaless_reader

        schema, skipped = self.parsed_schema, FRAME_BYTES if self.kind == AVRO_CONFLUENT else 0

        def decode(data: bytes) -> Any:
            writer = self._writer_of(data) if skipped else schema
            stream = io.BytesIO(data)
            stream.seek(skipped)
            try:
                value = schemaless_reader(stream, writer, None if writer is schema else schema)
            except Exception as error:
                raise ValueError(f"not of the schema: {type(error).__name__}") from None
            if stream.tell() != len(data):
                raise ValueError(f"{len(data) - stream.tell()} bytes more than the schema describes")
            return value

        return decode

    def _writer_of(self, data: bytes) -> Any:
        number = schema_id(data)
        if not self._writers:
            return self.parsed_schema
        if number not in self._writers:
            raise ValueError(f"schema id {number}, of which no schema is declared")
        return self._writers[number]


def serde_named(text: str) -> Serde:
    """Return a declared serde.

    :param text: the serde as an application file declares it.
    :raises InvalidInput: there is no serde of this name, or an Avro schema is missing.
    """
    kind, _, schema = text.partition(":")
    if text in _PLAIN:
        return Serde(text)
    if kind == AVRO_CONFLUENT and NUMBERED.match(schema):
        *earlier, (registered_id, last) = numbered(schema)
        return Serde(kind, last, registered_id, tuple(earlier))
    if kind in {AVRO, AVRO_CONFLUENT} and schema.strip():
        return Serde(kind, schema)
    raise InvalidInput(
        "serde",
        found=repr(text[:60]),
        expected="string, long, json, avro:<schema file>, avro-confluent:<schema file> or "
        "avro-confluent:<id>=<schema file>,<id>=<schema file>",
        remedy="Leave it out to get the bytes only.",
    )


def _long(data: bytes) -> int:
    if len(data) != 8:
        raise ValueError(f"{len(data)} bytes instead of 8")
    return int.from_bytes(data, "big", signed=True)


def _long_bytes(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


def _json(data: bytes) -> str:
    text = data.decode()
    json.loads(text)
    return text
