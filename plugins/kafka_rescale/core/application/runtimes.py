"""The runtime of an application file; its fields and its commands depend on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kafka_rescale.core.application.mistakes import Mistake

KAFKA_STREAMS, SPARK = "kafka-streams", "spark"

_REMEDIES = {
    KAFKA_STREAMS: "For a pipeline there are validate, describe, acls, status, add-stream-thread, "
    "remove-stream-thread, remove-client, start-client and expand-processors.",
    SPARK: "Threads and clients of Kafka Streams are its program's own (num.stream.threads).",
}


def runtime_in(data: Mapping[str, object]) -> str:
    """Return the runtime that a file's fields name; without a name it is `kafka-streams`."""
    return str(data.get("runtime", KAFKA_STREAMS))


def runtime_mistakes(data: Mapping[str, object], wanted: str) -> Iterator[Mistake]:
    """Yield what is wrong with a file's runtime. The check of the field itself reports an unknown runtime.

    :param wanted: the runtime that the file is used for.
    """
    found = runtime_in(data)
    if "pipeline" in data and "runtime" not in data:
        expected, remedy = "`runtime: spark` beside a field `pipeline`", "Add it, or delete `pipeline:`."
        yield Mistake(("runtime",), "no field `runtime`", expected, remedy)
    elif found in _REMEDIES and found != wanted:
        expected = f"{wanted}, the only runtime that this is for"
        yield Mistake(("runtime",), found, expected, _REMEDIES[wanted])
