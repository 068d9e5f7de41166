"""Aggregates of a grouped stream without windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kafka_rescale.core.pipeline.changes import Change, TableProcessor
from kafka_rescale.core.pipeline.processor import TaskContext
from kafka_rescale.core.pipeline.stores.table_stores import TimestampedKeyValueStore
from kafka_rescale.core.pipeline.task import Headers


class Aggregation(NamedTuple):
    """The functions that aggregate values.

    :param first: makes the aggregate to which the first value of a key is added.
    :param add: takes key, value and aggregate; returns the new aggregate. ``None`` deletes the aggregate.
    """

    first: Callable[[], Any]
    add: Callable[[Any, Any, Any], Any]


def counting() -> Aggregation:
    """Return the aggregation that counts values."""
    return Aggregation(lambda: 0, lambda key, value, count: count + 1)


def reducing(reducer: Callable[[Any, Any], Any]) -> Aggregation:
    """Return the aggregation whose first aggregate is the first value itself."""
    return Aggregation(
        lambda: None, lambda key, value, aggregate: value if aggregate is None else reducer(aggregate, value)
    )


def unchanged(aggregate: Any, again: Callable[[], Any]) -> Any:
    """Return an old aggregate that the aggregator can't change later.

    An aggregator may change the aggregate that it gets. If the aggregate is a mutable object, this function
    returns a second copy of it. Otherwise it returns the aggregate itself.

    :param again: makes the second copy. This function calls it only for a mutable aggregate.
    """
    return aggregate if isinstance(aggregate, _UNCHANGING) else again()


_UNCHANGING = (int, float, str, bytes, type(None))


class StreamAggregate(TableProcessor):
    """Aggregates a stream without windows, as ``KStreamAggregate`` and ``KStreamReduce`` do.

    :param sends_old: whether a later operation needs the old value.
    """

    def __init__(
        self, context: TaskContext, store: TimestampedKeyValueStore, how: Aggregation, sends_old: bool
    ) -> None:
        super().__init__(store, sends_old)
        self._context, self._store, self._how = context, store, how

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            self._context.dropped += 1
            return
        current, newest = self._current(key, timestamp)
        old = unchanged(current, lambda: self._current(key, timestamp)[0]) if self._sends_old else None
        new = self._how.add(key, value, current)
        self._store.put(key, new, newest, timestamp, headers)
        self.hand_on(key, Change(new, old), newest, headers)

    def _current(self, key: Any, timestamp: int) -> tuple[Any, int]:
        """Return the aggregate so far, and the latest timestamp among its records and the present record."""
        stored = self._store.get(key)
        if stored is None:
            return self._how.first(), timestamp
        return stored.value, max(timestamp, stored.timestamp)
