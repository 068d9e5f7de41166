"""Sources, sinks, and the operations that have no state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.nodes import SinkTarget
from kafka_rescale.core.pipeline.processor import Processor, TaskContext
from kafka_rescale.core.pipeline.serdes import Serde
from kafka_rescale.core.pipeline.task import Emitted, Headers, Record
from kafka_rescale.core.pipeline.vectorized import Batch, applied
from kafka_rescale.core.pipeline.windows import Windowed


class Source(Processor):
    """Reads a topic.

    :param key: the serde of the keys. Without a declared serde (``None``), keys stay bytes. The same holds for
        ``value``.
    """

    def __init__(self, key: Serde | None, value: Serde | None) -> None:
        self._key, self._value = key, value

    def read(self, record: Record) -> tuple[Any, Any]:
        """Return the key and the value of a record.

        :raises InvalidInput: the serde can't read the bytes.
        """
        return _decoded(record, "key", self._key, record.key), _decoded(record, "value", self._value, record.value)

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self.forward(key, value, timestamp, headers)


class Sink(Processor):
    """Writes a topic."""

    def __init__(self, context: TaskContext, target: SinkTarget) -> None:
        self._context, self._target = context, target

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        target = self._target
        encoded = _encoded(target, "key", target.key, key)
        partitioned_by, inner = None, getattr(target.key, "inner", None)
        if target.is_output and inner is not None and isinstance(key, Windowed):
            partitioned_by = _encoded(target, "key", inner, key.key)
        self._context.emitted.append(
            Emitted(
                target.topic,
                encoded,
                _encoded(target, "value", target.value, value),
                timestamp,
                headers,
                partition_key=partitioned_by,
            )
        )


class Columnar(Processor):
    """An operation that can process a whole batch of records at once."""

    function: Callable[..., Any] | None = None

    @abstractmethod
    def apply(self, batch: Batch) -> None:
        """Do to all records of a batch what ``process`` does to one record."""


class Filter(Columnar):
    """Keeps the records for which a predicate is true, as ``KStreamFilter`` does."""

    def __init__(self, predicate: Callable[[Any, Any], object]) -> None:
        self.function = self._predicate = predicate

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if self._predicate(key, value):
            self.forward(key, value, timestamp, headers)

    def apply(self, batch: Batch) -> None:
        batch.keep(applied(self._predicate, batch.keys, batch.values))


class MapValues(Columnar):
    """Replaces values, as ``KStreamMapValues`` does.

    :param mapper: takes a value, or a key and a value.
    """

    def __init__(self, mapper: Callable[..., Any], with_key: bool) -> None:
        self.function = self._mapper = mapper
        self._with_key = with_key

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        mapped = self._mapper(key, value) if self._with_key else self._mapper(value)
        self.forward(key, mapped, timestamp, headers)

    def apply(self, batch: Batch) -> None:
        columns = (batch.keys, batch.values) if self._with_key else (batch.values,)
        batch.values = applied(self._mapper, *columns)


class SelectKey(Columnar):
    """Replaces keys, as the ``KStreamMap`` of ``selectKey`` does."""

    def __init__(self, mapper: Callable[[Any, Any], Any]) -> None:
        self.function = self._mapper = mapper

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self.forward(self._mapper(key, value), value, timestamp, headers)

    def apply(self, batch: Batch) -> None:
        batch.keys = applied(self._mapper, batch.keys, batch.values)


class WithKey(Processor):
    """Drops records without a key in front of a repartition topic, where they would go to any partition."""

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is not None:
            self.forward(key, value, timestamp, headers)


class PassThrough(Processor):
    """Hands on every record, as ``PassThrough`` does.

    It stands where the results of several nodes meet, and before a repartition topic that keeps records without a
    key.
    """

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self.forward(key, value, timestamp, headers)


def _decoded(record: Record, part: str, serde: Serde | None, data: bytes | None) -> Any:
    if data is None or serde is None:
        return data
    try:
        return serde.decode(data)
    except Exception as error:
        raise InvalidInput(
            f"{part} of {record.topic}-{record.partition} at offset {record.offset}",
            found=f"bytes that its serde can't read: {error}"[:200],
            expected=f"bytes of the {part} serde that the pipeline names for this topic",
            remedy="Name the serde with which the topic is written, or read bytes and decode them in map_values.",
        ) from error


def _encoded(target: SinkTarget, part: str, serde: Serde | None, value: Any) -> bytes | None:
    if value is None:
        return None
    try:
        if serde is not None:
            return serde.encode(value)
        if isinstance(value, bytes):
            return value
    except Exception as error:
        raise _not_writable(target, part, value, f": {error}"[:120]) from error
    raise _not_writable(target, part, value, " and no serde")


def _not_writable(target: SinkTarget, part: str, value: Any, more: str) -> InvalidInput:
    return InvalidInput(
        f"{part} for topic {target.topic!r}",
        found=f"a {type(value).__name__}{more}",
        expected=f"a {part} that the serde of this sink can write",
        remedy=f"Name the {part} serde where the topic is written, or where the table or the grouping is made.",
    )
