"""How tables are stored, how joins read them, and when their updates carry the old values.

Only the complete program decides whether a table has a store. A table that is read from a topic gets a store when
an operation reads the table by key. The result of a filter or a mapping needs no store of its own: it can be
computed from the table in front (``KTableImpl``).
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
    """The access of a join to a table.

    :param stores: names of the stores that the join needs to read the table.
    :param getter: makes the function that reads the table of a task.
    """

    stores: tuple[str, ...]
    getter: Callable[[TaskContext], Getter]


class TableLogic(ABC):
    """A table. ``sends_old`` says whether its updates carry the old values."""

    sends_old = False

    @abstractmethod
    def reader(self) -> Reader:
        """Return the access to the table by key. If this needs a store, give the table a store."""

    def send_old(self, *, force: bool = True) -> bool:
        """Let the updates of the table carry the old values, and return whether they carry them.

        :param force: whether to give the table a store if the old values need one.
        """
        self.sends_old = True
        return True


class MaterializedTable(TableLogic):
    """A table that has a store."""

    def __init__(self, store: StoreDefinition, serdes: StoreSerdes) -> None:
        self.store, self._serdes = store, serdes

    def open(self, context: TaskContext) -> TimestampedKeyValueStore:
        """Return the store of a task."""
        return TimestampedKeyValueStore(table_view(context, self.store), self._serdes)

    def reader(self) -> Reader:
        return Reader((self.store.name,), lambda context: self.open(context).get)


class SourceTable(MaterializedTable):
    """A table that is read from a topic. It has a store if the user has named one or an operation needs one."""

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
        """Return the processor that takes the updates of the topic."""
        store = self.open(context) if self.is_materialized else None
        return TableSource(context, store, self.sends_old)


class ComputedTable(TableLogic):
    """A table that is computed from another table (``KTableFilter``, ``KTableMapValues``).

    It has a store only if the user has named the store.
    """

    def __init__(
        self, parent: TableLogic, compute: Compute, kept: MaterializedTable | None, *, is_filter: bool
    ) -> None:
        self._parent, self._compute, self._kept, self._is_filter = parent, compute, kept, is_filter
        if is_filter:
            # Old values show whether the key was in the result before. Without them, the filter would hand on a
            # tombstone for every update that it leaves out.
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
        """Return the processor that takes the updates of the other table."""
        store = None if self._kept is None else self._kept.open(context)
        return TableCompute(self._compute, store, self.sends_old, self._is_filter)
