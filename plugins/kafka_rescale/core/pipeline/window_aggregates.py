"""Aggregates of a grouped stream in windows of time and in sessions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kafka_rescale.core.pipeline.aggregates import Aggregation, unchanged
from kafka_rescale.core.pipeline.changes import Change, TableProcessor
from kafka_rescale.core.pipeline.processor import Mark, TaskContext
from kafka_rescale.core.pipeline.stores.window_stores import Session, SessionStore, WindowStore
from kafka_rescale.core.pipeline.task import Headers
from kafka_rescale.core.pipeline.windows import SessionWindows, TimeWindows, Windowed

Merger = Callable[[Any, Any, Any], Any]
"""Takes a key and the aggregates of two sessions; returns one aggregate."""


class WindowAggregate(TableProcessor):
    """Aggregates in windows of time and emits every update, as ``KStreamWindowAggregate`` does.

    :param observed: the highest timestamp that this processor has seen. It decides which records are late.
    """

    def __init__(
        self,
        context: TaskContext,
        store: WindowStore,
        windows: TimeWindows,
        how: Aggregation,
        sends_old: bool,
        observed: Mark,
    ) -> None:
        super().__init__(store, sends_old)
        self._context, self._store, self._windows, self._how = context, store, windows, how
        self._observed = observed

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None:
            self._context.dropped += 1
            return
        self._observed.value = max(self._observed.value, timestamp)
        closed = self._observed.value - self._windows.grace_ms
        for start in self._windows.starts(timestamp):
            end = start + self._windows.size_ms
            if end <= closed:
                self._context.dropped += 1
                continue
            self._add(Windowed(key, start, end), value, timestamp, headers)

    def _add(self, window: Windowed, value: Any, timestamp: int, headers: Headers) -> None:
        current, newest = self._current(window, timestamp)
        old = unchanged(current, lambda: self._current(window, timestamp)[0]) if self._sends_old else None
        new = self._how.add(window.key, value, current)
        self._store.put(window.key, window.start, new, newest, timestamp, headers)
        self.hand_on(window, Change(new, old), newest, headers)

    def _current(self, window: Windowed, timestamp: int) -> tuple[Any, int]:
        """Return the aggregate so far, and the latest timestamp among its records and the present record."""
        stored = self._store.fetch(window.key, window.start)
        if stored is None:
            return self._how.first(), timestamp
        return stored.value, max(timestamp, stored.timestamp)


class SessionAggregate(TableProcessor):
    """Aggregates in sessions and emits every update, as ``KStreamSessionWindowAggregate`` does.

    :param observed: the highest timestamp that this processor has seen. It decides which records are late.
    """

    def __init__(
        self,
        context: TaskContext,
        store: SessionStore,
        windows: SessionWindows,
        how: Aggregation,
        merger: Merger,
        sends_old: bool,
        observed: Mark,
    ) -> None:
        super().__init__(store, sends_old)
        self._context, self._store, self._windows, self._how = context, store, windows, how
        self._merger, self._observed = merger, observed

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None:
            self._context.dropped += 1
            return
        self._observed.value = max(self._observed.value, timestamp)
        closed = self._observed.value - self._windows.grace_ms - self._windows.gap_ms
        gap = self._windows.gap_ms
        near = self._store.find(key, timestamp - gap, timestamp + gap)
        merged = self._how.first()
        for session in near:
            merged = self._merger(key, merged, session.value)
        start = min((timestamp, *(s.start for s in near)))
        end = max((timestamp, *(s.end for s in near)))
        if end < closed:
            self._context.dropped += 1
            return
        if start != end:
            for session in near:
                old = unchanged(session.value, partial(self._store.get, key, session)) if self._sends_old else None
                self._store.put(key, session._replace(value=None), timestamp, headers)
                self._emit(key, session, old, None)
        new = Session(start, end, self._how.add(key, value, merged))
        self._store.put(key, new, timestamp, headers)
        self._emit(key, new, None, new.value)

    def _emit(self, key: Any, session: Session, old: Any, new: Any) -> None:
        change = Change(new, old if self._sends_old else None)
        self.hand_on(Windowed(key, session.start, session.end), change, session.end, ())
