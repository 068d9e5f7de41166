"""A pipeline whose function fails in the way that a value asks for, and the handler of KIP-663's example."""

from __future__ import annotations

from kafka_rescale.core.errors import Outage
from kafka_rescale.core.pipeline import STRING, Pipeline, StreamsBuilder

INPUT, OUTPUT = "failing-in", "failing-out"
HANDED: list[Exception] = []


class ProcessorStateException(Exception):
    """An error whose constructor takes more than a text, like the errors of many libraries."""

    def __init__(self, store: str, cause: str) -> None:
        super().__init__(f"{store}: {cause}")


def checked(value: str) -> str:
    if value == "state":
        raise ProcessorStateException("counts", "it can't be read")
    return str(int(value))


def failing() -> Pipeline:
    """A pipeline that checks each value by a function that can fail."""
    builder = StreamsBuilder()
    builder.stream(INPUT, key=STRING, value=STRING).map_values(checked, value=STRING).to(OUTPUT)
    return builder.build()


def handler(exception: Exception) -> str:
    """Replace a thread that died of its state or of an outage. For any other error, end the client."""
    HANDED.append(exception)
    if isinstance(exception, Outage) or isinstance(exception.__cause__, ProcessorStateException):
        return "REPLACE_THREAD"
    return "SHUTDOWN_CLIENT"


def handler_that_fails(exception: Exception) -> str:
    raise ValueError("a mistake in the handler")


def handler_that_answers_something_else(exception: Exception) -> None:
    return None
