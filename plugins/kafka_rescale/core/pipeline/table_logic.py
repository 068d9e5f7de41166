"""How tables are kept, read by joins, and asked for their old values.

Whether a table is in a store is only known when the program is complete: a table that is read from a topic gets
its store when something reads it by key, filters and mappings are computed where that is enough (``KTableImpl``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka_rescale.core.pipeline.changes import Compute, TableCompute, TableSource
from kafka_rescale.core.pipeline.processor import Processor, TaskContext
from kafka_rescale.core.pipeline.stores.table_stores import (
    StoreSerdes,
    TimestampedKeyValueStore,
    ValueAndTimestamp,
)
from kafka_rescale.core.pipeline.stores.table_views import table_view
from kafka_rescale.core.pipeline.task import StoreDefinition

Getter = Callable[[Any], ValueAndTimestamp | None]


class Reader(NamedTuple):
    """How a join reads a table.

    :param stores: names of the stores that it needs for that.
    :param getter: makes what reads the table of a task.
    """

    stores: tuple[str, ...]
    getter: Callable[[TaskContext], Getter]


class TableLogic(ABC):
    """A table; ``sends_old`` is whether its updates say what was there before."""

    sends_old = False

    @abstractmethod
    def reader(self) -> Reader:
        """Return how it is read by key, and see to it that it can be."""

    def send_old(self, *, force: bool = True) -> bool:
        """Let its updates say what was there before, and return whether they do.

        :param force: even if it has to be put into a store for that.
        """
        self.sends_old = True
        return True


class MaterializedTable(TableLogic):
    """A table in a store."""

    def __init__(self, store: StoreDefinition, serdes: StoreSerdes) -> None:
        self.store, self._serdes = store, serdes

    def open(self, context: TaskContext) -> TimestampedKeyValueStore:
        """Return the store of a task."""
        return TimestampedKeyValueStore(table_view(context, self.store), self._serdes)

    def reader(self) -> Reader:
        return Reader((self.store.name,), lambda context: self.open(context).get)


class SourceTable(MaterializedTable):
    """A table that is read from a topic; it has a store only if it has a name or an operation needs the store."""

    def __init__(self, store: StoreDefinition, serdes: StoreSerdes, is_materialized: bool) -> None:
        super().__init__(store, serdes)
        self.is_materialized = is_materialized

    def reader(self) -> Reader:
        self.is_materialized = True
        return super().reader()

    def send_old(self, *, force: bool = True) -> bool:
        self.is_materialized = self.is_materialized or force
        return self.is_materialized and super().send_old()

    def processor(self, context: TaskContext) -> Processor:
        """Return what a task does with an update."""
        store = self.open(context) if self.is_materialized else None
        return TableSource(context, store, self.sends_old)


class ComputedTable(TableLogic):
    """``KTableFilter`` and ``KTableMapValues``: computed from another table, in a store only if it has a name."""

    def __init__(
        self, parent: TableLogic, compute: Compute, kept: MaterializedTable | None, *, is_filter: bool
    ) -> None:
        self._parent, self._compute, self._kept, self._is_filter = parent, compute, kept, is_filter
        if is_filter:
            # To nothing from nothing would be a tombstone for every key that the filter leaves out.
            self.sends_old = parent.send_old(force=False)

    def reader(self) -> Reader:
        if self._kept is not None:
            return self._kept.reader()
        stores, parent_getter = self._parent.reader()

        def getter(context: TaskContext) -> Getter:
            parent = parent_getter(context)

            def get(key: Any) -> ValueAndTimestamp | None:
                found = parent(key)
                value = None if found is None else self._compute(key, found.value)
                return None if found is None or value is None else found._replace(value=value)

            return get

        return Reader(stores, getter)

    def send_old(self, *, force: bool = True) -> bool:
        if self._kept is not None or self._parent.send_old(force=force):
            self.sends_old = True
        return self.sends_old

    def processor(self, context: TaskContext) -> Processor:
        """Return what a task does with an update."""
        store = None if self._kept is None else self._kept.open(context)
        return TableCompute(self._compute, store, self.sends_old, self._is_filter)
