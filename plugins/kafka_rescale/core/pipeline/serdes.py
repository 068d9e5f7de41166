"""Serdes of a pipeline. They turn Python values into the bytes of Kafka's own serializers, and back.

``None`` never reaches a serde. As in Kafka Streams, it stands for a missing key or for a tombstone.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, Protocol

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.formats import serdes as declared


class Serde(Protocol):
    """Any object with these two methods is a serde. A user's serde may raise any error for a wrong value."""

    def encode(self, value: Any) -> bytes:
        """Return the bytes of a value that isn't ``None``."""
        ...

    def decode(self, data: bytes) -> Any:
        """Return the value that bytes stand for.

        :raises ValueError: this serde did not write the bytes.
        """
        ...


class _Bytes:
    """Leaves bytes as they are, as ``ByteArraySerializer`` does."""

    def encode(self, value: bytes) -> bytes:
        return value

    def decode(self, data: bytes) -> bytes:
        return data


class _Json:
    """JSON in UTF-8, without spaces. The members of an object keep the order in which they were added."""

    def encode(self, value: Any) -> bytes:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

    def decode(self, data: bytes) -> Any:
        return json.loads(data)


class _Packed:
    """Numbers of fixed width, big-endian."""

    def __init__(self, code: str) -> None:
        self._struct = struct.Struct(f">{code}")

    def encode(self, value: Any) -> bytes:
        return self._struct.pack(value)

    def decode(self, data: bytes) -> Any:
        try:
            return self._struct.unpack(data)[0]
        except struct.error:
            raise ValueError(f"{len(data)} bytes instead of {self._struct.size}") from None


BYTES: Serde = _Bytes()
STRING: Serde = declared.serde_named(declared.STRING)
LONG: Serde = declared.serde_named(declared.LONG)
INTEGER: Serde = _Packed("i")
DOUBLE: Serde = _Packed("d")
JSON: Serde = _Json()


_COLUMNS = ((STRING, "string"), (LONG, "integer"), (INTEGER, "integer"), (DOUBLE, "float"), (BYTES, "bytes"))


def column_kind(serde: Serde | None) -> str:
    """Return the kind of all values that a serde reads. The kind does not depend on the values of a batch.

    :returns: ``string``, ``integer``, ``float`` or ``bytes``. An empty text if the kind depends on the values.
    """
    return next((kind for known, kind in _COLUMNS if known == serde), "")


def avro(schema: str, *, registered_id: int | None = None, earlier: Mapping[int, str] | None = None) -> Serde:
    """Return a serde of Avro's binary encoding.

    :param schema: the schema as JSON text.
    :param registered_id: the id of the schema in a registry. If it is given, the serde writes the registry's frame
        in front of every value, and expects the frame in front of every value that it reads.
    :param earlier: other schemas that the registry has for the subject, by id. A value that was written by one of
        these schemas is read as ``schema``. Any other id is an error.
    :raises InvalidInput: there are earlier schemas, but no id. Then nothing tells which schema wrote a value.
    """
    if earlier and registered_id is None:
        raise InvalidInput(
            "avro(earlier=…)",
            found="no registered_id",
            expected="the id of the schema that is written",
            remedy="Give the id: only the registry's frame tells which schema wrote a value.",
        )
    kind = declared.AVRO if registered_id is None else declared.AVRO_CONFLUENT
    return declared.Serde(kind, schema, registered_id, tuple((earlier or {}).items()))
