"""Avro schemas as texts, and the frame in which a schema registry's serializers name them by id.

The frame is a zero byte and the id, 4 bytes, big-endian.
"""

from __future__ import annotations

import json
import re
from typing import Any

from kafka_rescale.core.errors import InvalidInput

NUMBERED = re.compile(r"\s*(\d+)\s*=\s*")
MAGIC = b"\x00"
FRAME_BYTES = 5


def schema_id(data: bytes) -> int:
    """Return the registered id of the schema by which framed bytes were written.

    :raises ValueError: the bytes have no frame.
    """
    if len(data) < FRAME_BYTES or data[:1] != MAGIC:
        raise ValueError("no frame of a schema registry")
    return int.from_bytes(data[1:FRAME_BYTES], "big")


def parsed(schema: str) -> Any:
    """Return a schema as fastavro has it, with its named types resolved.

    :raises InvalidInput: the text is no Avro schema.
    """
    from fastavro import parse_schema
    from fastavro.schema import SchemaParseException

    try:
        return parse_schema(json.loads(schema))
    except (ValueError, KeyError, TypeError, AttributeError, SchemaParseException) as error:
        # fastavro raises KeyError, TypeError or AttributeError if a part of a schema is missing.
        raise InvalidInput(
            "Avro schema",
            found=f"{type(error).__name__}: {error}"[:200],
            expected="an Avro schema in JSON",
            remedy="Name the .avsc file with which the application writes.",
        ) from None


def numbered(text: str) -> list[tuple[int, str]]:
    """Return schemas by their ids, in the order of the text. All values are read as the last schema.

    :param text: ``<id>=<schema>``, separated by commas.
    :raises InvalidInput: the text has something else than ids with schemas in JSON, or the same id twice.
    """
    found: dict[int, str] = {}
    rest = text
    while match := NUMBERED.match(rest):
        rest = rest[match.end() :]
        try:
            _, end = json.JSONDecoder().raw_decode(rest)
        except ValueError:
            break
        number = int(match[1])
        if number in found:
            break
        found[number], rest = rest[:end], rest[end:].lstrip()
        if not rest:
            return list(found.items())
        if not rest.startswith(","):
            break
        rest = rest[1:]
    raise InvalidInput(
        "Avro schemas by id",
        found=repr(rest[:60]),
        expected="<id>=<schema>, each id once, parted by commas",
        remedy="Name each schema that the registry has for this subject by its id.",
    )
