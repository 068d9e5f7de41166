"""The request to a job as one argument of its command line; Linux takes no argument beyond 128 KiB."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

from kafka_rescale.core.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic import BaseModel

LONGEST_BYTES = 100_000
_PACKED = "zlib:"


def as_argument(request: BaseModel) -> str:
    """Return a request as JSON. If it is long, it is packed: schemas of many stores, or tasks of many partitions.

    :raises InvalidInput: the request is too long even if it is packed.
    """
    text = request.model_dump_json()
    if len(text.encode()) <= LONGEST_BYTES:
        return text
    packed = _PACKED + b64encode(zlib.compress(text.encode(), 9)).decode()
    if len(packed) > LONGEST_BYTES:
        raise InvalidInput(
            "request of a job",
            found=f"{len(packed)} bytes after compression, of {len(text.encode())}",
            expected=f"at most {LONGEST_BYTES}, for a command line",
            remedy="Declare fewer or shorter Avro schemas under `snapshots.stores`. Snapshots have the bytes of "
            "keys and values even without a schema.",
        )
    return packed


def from_argument(argument: str) -> str:
    """Return the JSON of a request.

    :raises ValueError: a packed request is damaged.
    """
    if not argument.startswith(_PACKED):
        return argument
    try:
        return zlib.decompress(b64decode(argument.removeprefix(_PACKED))).decode()
    except zlib.error as error:
        raise ValueError(str(error)) from None
