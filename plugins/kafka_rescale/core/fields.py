"""What the fields of an application file have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from kafka_rescale.core.errors import InvalidInput

TOPIC_NAME = r"^[a-zA-Z0-9._-]{1,200}$"
Name = Annotated[str, Field(pattern=TOPIC_NAME)]
PartitionCount = Annotated[int, Field(ge=1, le=100_000)]


class Strict(BaseModel):
    """Unknown fields are errors: a misspelt field must not be silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def checked(value: str, lookup: Callable[[str], object]) -> str:
    """Return the value if it can be looked up; else the error's text becomes a message about the field."""
    try:
        lookup(value)
    except InvalidInput as error:
        raise ValueError(f"found {error.found}; expected {error.expected}. {error.remedy}") from None
    return value
