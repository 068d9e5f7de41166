"""The place of our files: a path or a URI from the application file, as Arrow opens it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import fs

from kafka_rescale.core.errors import InvalidInput


def arrow_place(field: str, location: str, below: str) -> tuple[Any, str]:
    """Return the file system of a location, and the directory below it.

    :param field: field of the application file, for the message.
    :param below: path relative to the location.
    :raises InvalidInput: Arrow can't write there.
    """
    try:
        system, root = fs.FileSystem.from_uri(location)
    except (pa.ArrowException, ValueError, OSError, ImportError) as error:
        raise InvalidInput(
            field,
            found=f"{location}: {error}"[:300],
            expected="a place that Arrow can write to",
            remedy="Correct it; the credentials come from the environment.",
        ) from None
    return system, f"{root.rstrip('/')}/{below}"
