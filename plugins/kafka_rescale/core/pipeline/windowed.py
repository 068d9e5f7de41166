"""Grouped streams in windows, with the methods of ``TimeWindowedKStream`` and ``SessionWindowedKStream``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.aggregates import Aggregation, counting, reducing
from kafka_rescale.core.pipeline.processor import Processor, TaskContext
from kafka_rescale.core.pipeline.serdes import LONG, Serde
from kafka_rescale.core.pipeline.stores.table_stores import StoreSerdes, ValueAndTimestamp
from kafka_rescale.core.pipeline.stores.window_stores import Session, SessionStore, WindowStore
from kafka_rescale.core.pipeline.table_logic import Getter, Reader, TableLogic
from kafka_rescale.core.pipeline.tables import KTable
from kafka_rescale.core.pipeline.task import StoreDefinition
from kafka_rescale.core.pipeline.window_aggregates import Merger, SessionAggregate, WindowAggregate
from kafka_rescale.core.pipeline.windows import SessionWindows, TimeWindows, Windowed

if TYPE_CHECKING:
    from kafka_rescale.core.pipeline.grouped import KGroupedStream

AGGREGATE, REDUCE = "KSTREAM-AGGREGATE-", "KSTREAM-REDUCE-"


@dataclass(frozen=True)
class WindowedKStream:
    """A grouped stream in windows. Its methods aggregate it.

    The keys of the resulting tables are :class:`Windowed`.

    A parameter ``store`` is the name of the state store. The name of its changelog follows from it. Without
    ``store``, the name is generated. A parameter ``retention`` is the time for which the store keeps windows. It
    must be at least the time in which a window can change.
    """

    grouped: KGroupedStream
    windows: TimeWindows | SessionWindows

    def count(
        self, *, store: str = "", value: Serde = LONG, retention: timedelta | None = None, name: str = ""
    ) -> KTable:
        """Count the records of every key and window."""
        return self._aggregated(AGGREGATE, counting(), _sum, store, value, retention, name)

    def reduce(
        self,
        reducer: Callable[[Any, Any], Any],
        *,
        store: str = "",
        value: Serde | None = None,
        retention: timedelta | None = None,
        name: str = "",
    ) -> KTable:
        """Combine the values of every key and window by ``reducer(aggregate, value)``."""
        how = reducing(reducer)

        def merger(key: Any, one: Any, two: Any) -> Any:
            return how.add(key, two, one)

        return self._aggregated(REDUCE, how, merger, store, value or self.grouped.value, retention, name)

    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        merger: Merger | None = None,
        *,
        store: str = "",
        value: Serde | None = None,
        retention: timedelta | None = None,
        name: str = "",
    ) -> KTable:
        """Add the values of every key and window to ``initializer()`` by ``aggregator(key, value, aggregate)``.

        :param merger: ``merger(key, one, two)`` makes one aggregate of two. Sessions need a merger; windows of
            time do not allow it.
        :param value: the serde of the aggregates.
        """
        if (merger is not None) != isinstance(self.windows, SessionWindows):
            raise InvalidInput(
                "aggregate in windows",
                found="no merger for sessions" if merger is None else "a merger for windows of time",
                expected="a merger if the windows are sessions, and only then",
                remedy="Give a merger(key, one, two) for sessions, because two sessions can become one session. "
                "Windows of time never merge.",
            )
        how = Aggregation(initializer, aggregator)
        return self._aggregated(AGGREGATE, how, merger, store, value, retention, name)

    def _aggregated(
        self,
        prefix: str,
        how: Aggregation,
        merger: Merger | None,
        store: str,
        value: Serde | None,
        retention: timedelta | None,
        name: str,
    ) -> KTable:
        grouped, windows = self.grouped, self.windows
        kind = "session" if isinstance(windows, SessionWindows) else "timestamped-window"
        kept_ms = _retention(windows, retention)
        store = store or grouped.graph.new_store_name(prefix)
        definition = StoreDefinition(store, kind, kept_ms, window_bytes=grouped.window_bytes)
        name = grouped.graph.new_name(prefix, name)
        serdes = StoreSerdes(definition.name, grouped.key, value)
        logic: WindowTable | SessionTable
        if isinstance(windows, SessionWindows):
            assert merger is not None
            logic = SessionTable(name, definition, serdes, windows, how, merger)
        else:
            logic = WindowTable(name, definition, serdes, windows, how)
        node, sources = grouped.add_aggregation(name, definition, logic.processor)
        window_bytes = grouped.window_bytes + windows.key_bytes
        return KTable(grouped.graph, node, windows.serde(grouped.key), value, sources, logic, window_bytes)


@dataclass
class WindowTable(TableLogic):
    """The table that an aggregation in windows of time makes."""

    name: str
    store: StoreDefinition
    serdes: StoreSerdes
    windows: TimeWindows
    how: Aggregation

    def reader(self) -> Reader:
        def getter(context: TaskContext) -> Getter:
            store = WindowStore(context, self.store, self.serdes, self.windows.size_ms)
            return lambda windowed: store.fetch(windowed.key, windowed.start)

        return Reader((self.store.name,), getter)

    def processor(self, context: TaskContext) -> Processor:
        """Return the aggregation of a task."""
        store = WindowStore(context, self.store, self.serdes, self.windows.size_ms)
        observed = context.observed(self.store.name, self.name)
        return WindowAggregate(context, store, self.windows, self.how, self.sends_old, observed)


@dataclass
class SessionTable(TableLogic):
    """The table that an aggregation in sessions makes."""

    name: str
    store: StoreDefinition
    serdes: StoreSerdes
    windows: SessionWindows
    how: Aggregation
    merger: Merger

    def reader(self) -> Reader:
        def getter(context: TaskContext) -> Getter:
            store = SessionStore(context, self.store, self.serdes)

            def get(windowed: Windowed) -> ValueAndTimestamp | None:
                value = store.get(windowed.key, Session(windowed.start, windowed.end))
                return None if value is None else ValueAndTimestamp(value, windowed.end)

            return get

        return Reader((self.store.name,), getter)

    def processor(self, context: TaskContext) -> Processor:
        """Return the aggregation of a task."""
        store = SessionStore(context, self.store, self.serdes)
        observed = context.observed(self.store.name, self.name)
        return SessionAggregate(context, store, self.windows, self.how, self.merger, self.sends_old, observed)


def _sum(key: Any, one: int, two: int) -> int:
    return one + two


def _retention(windows: TimeWindows | SessionWindows, retention: timedelta | None) -> int:
    if retention is None:
        return windows.retention_ms
    kept_ms = retention // timedelta(milliseconds=1)
    if kept_ms < windows.retention_ms:
        raise InvalidInput(
            "retention of windows",
            found=f"{kept_ms} ms",
            expected=f"at least {windows.retention_ms} ms, the time in which windows can change",
            remedy="Raise the retention or lower the grace period.",
        )
    return kept_ms
