"""Aggregates of a grouped stream without windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kafka_rescale.core.pipeline.changes import Change
from kafka_rescale.core.pipeline.processor import Processor, TaskContext
from kafka_rescale.core.pipeline.stores import TimestampedKeyValueStore
from kafka_rescale.core.pipeline.task import Headers


class Aggregation(NamedTuple):
    """How values are aggregated.

    :param first: makes the aggregate that the first value of a key is added to.
    :param add: from key, value and aggregate to aggregate; ``None`` deletes it.
    """

    first: Callable[[], Any]
    add: Callable[[Any, Any, Any], Any]


def counting() -> Aggregation:
    """Return the aggregation that counts."""
    return Aggregation(lambda: 0, lambda key, value, count: count + 1)


def reducing(reducer: Callable[[Any, Any], Any]) -> Aggregation:
    """Return the aggregation that starts with the first value itself."""
    return Aggregation(
        lambda: None, lambda key, value, aggregate: value if aggregate is None else reducer(aggregate, value)
    )


class StreamAggregate(Processor):
    """``KStreamAggregate`` and ``KStreamReduce``.

    :param sends_old: whether something behind it needs the old value.
    """

    def __init__(
        self, context: TaskContext, store: TimestampedKeyValueStore, how: Aggregation, sends_old: bool
    ) -> None:
        self._context, self._store, self._how, self._sends_old = context, store, how, sends_old

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            self._context.dropped += 1
            return
        stored = self._store.get(key)
        if stored is None:
            old, newest = self._how.first(), timestamp
        else:
            old, newest = stored.value, max(timestamp, stored.timestamp)
        new = self._how.add(key, value, old)
        self._store.put(key, new, newest, timestamp)
        self.forward(key, Change(new, old if self._sends_old else None), newest, headers)
