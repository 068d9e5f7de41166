"""Updates of tables, and the operations that take one update at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kafka_rescale.core.pipeline.processor import Processor, TaskContext
from kafka_rescale.core.pipeline.stores.table_stores import TableStore, TimestampedKeyValueStore
from kafka_rescale.core.pipeline.task import Headers

Compute = Callable[[Any, Any], Any]
"""Takes a key and a value that isn't ``None``; returns a value."""


class Change(NamedTuple):
    """An update of a table. ``old`` is set only if a later operation needs old values."""

    new: Any
    old: Any


class TableProcessor(Processor):
    """Hands on the updates of a table: at once, or when the cache of the table's store writes them.

    ``TimestampedTupleForwarder`` and ``TimestampedCacheFlushListener`` of Kafka Streams do the same.

    :param kept: the store of the table, or ``None`` if the table has no store.
    :param sends_old: whether a later operation needs the old values.
    """

    def __init__(self, kept: TableStore | None, sends_old: bool) -> None:
        self._sends_old = sends_old
        self._waits = kept is not None and kept.is_cached
        if kept is not None:
            kept.listen(self._written, sends_old=sends_old)

    def hand_on(self, key: Any, change: Change, timestamp: int, headers: Headers) -> None:
        """Forward an update that was put into the store. If the store has a cache, the cache forwards it later."""
        if not self._waits:
            self.forward(key, change, timestamp, headers)

    def _written(self, key: Any, new: Any, old: Any, timestamp: int, headers: Headers) -> None:
        self.forward(key, Change(new, old), timestamp, headers)


class TableSource(TableProcessor):
    """Makes a table of a stream of updates, as ``KTableSource`` does.

    :param store: the store of the table, or ``None`` if no operation reads the table.
    """

    def __init__(self, context: TaskContext, store: TimestampedKeyValueStore | None, sends_old: bool) -> None:
        super().__init__(store, sends_old)
        self._context, self._store = context, store
        # Kafka Streams always reads the old value. Only with a cache is there a visible effect: the read decides
        # which entries the cache drops first.
        self._reads_old = sends_old or self._waits

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None:
            self._context.dropped += 1
            return
        old = None
        if self._store is not None:
            stored = self._store.get(key) if self._reads_old else None
            old = None if stored is None else stored.value
            self._store.put(key, value, timestamp, timestamp, headers)
        self.hand_on(key, Change(value, old), timestamp, headers)


class TableCompute(TableProcessor):
    """Computes a table from another one, as ``KTableFilter`` and ``KTableMapValues`` do.

    :param store: the store of the result, or ``None`` if the result isn't materialized.
    :param skips_nothing: whether to drop an update that has neither an old nor a new value, as filters do. This
        works only with ``sends_old``: without it, the old value is not known.
    """

    def __init__(
        self, compute: Compute, store: TimestampedKeyValueStore | None, sends_old: bool, skips_nothing: bool
    ) -> None:
        super().__init__(store, sends_old)
        self._compute, self._store, self._skips_nothing = compute, store, skips_nothing

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        new = None if value.new is None else self._compute(key, value.new)
        old = self._old(key, value.old) if self._sends_old else None
        if self._skips_nothing and self._sends_old and old is None and new is None:
            return
        if self._store is not None:
            self._store.put(key, new, timestamp, timestamp, headers)
        self.hand_on(key, Change(new, old), timestamp, headers)

    def _old(self, key: Any, value: Any) -> Any:
        if self._store is not None:
            stored = self._store.get(key)
            return None if stored is None else stored.value
        return None if value is None else self._compute(key, value)


class ToStream(Processor):
    """Hands on the new values of a table, also tombstones, without the old values, as ``KTable#toStream`` does."""

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self.forward(key, value.new, timestamp, headers)
