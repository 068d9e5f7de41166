"""Serdes of a pipeline: Python values to the bytes of Kafka's own serializers, and back.

``None`` never reaches a serde: it is a record without a key, or a tombstone, as in Kafka Streams.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, Protocol

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.formats import serdes as declared


class Serde(Protocol):
    """Anything with these two methods is a serde; one of the user's own may raise any error for a wrong value."""

    def encode(self, value: Any) -> bytes:
        """Return the bytes of a value that isn't ``None``."""
        ...

    def decode(self, data: bytes) -> Any:
        """Return the value of bytes.

        :raises ValueError: the bytes aren't of this serde.
        """
        ...


class _Bytes:
    """``ByteArraySerializer``."""

    def encode(self, value: bytes) -> bytes:
        return value

    def decode(self, data: bytes) -> bytes:
        return data


class _Json:
    """JSON in UTF-8, without spaces, members in the order that they were added in."""

    def encode(self, value: Any) -> bytes:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

    def decode(self, data: bytes) -> Any:
        return json.loads(data)


class _Packed:
    """A number of fixed width, big-endian."""

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
    """Return what a column of a serde's values holds, whichever of them are in a batch.

    :returns: ``string``, ``integer``, ``float`` or ``bytes``; empty where only the values themselves tell.
    """
    return next((kind for known, kind in _COLUMNS if known == serde), "")


def avro(schema: str, *, registered_id: int | None = None, earlier: Mapping[int, str] | None = None) -> Serde:
    """Return a serde of Avro's binary encoding.

    :param schema: as JSON text.
    :param registered_id: of the schema in a registry, whose frame is then written and expected in front.
    :param earlier: other schemas that the registry has for the subject, by id; what they have written is read as
        ``schema``. An id that is neither is an error.
    :raises InvalidInput: earlier schemas, and no id: nothing would tell which of them wrote a value.
    """
    if earlier and registered_id is None:
        raise InvalidInput(
            "avro(earlier=…)",
            found="no registered_id",
            expected="the id of the schema that is written",
            remedy="Give it: only a frame tells by which schema a value was written.",
        )
    kind = declared.AVRO if registered_id is None else declared.AVRO_CONFLUENT
    return declared.Serde(kind, schema, registered_id, tuple((earlier or {}).items()))
