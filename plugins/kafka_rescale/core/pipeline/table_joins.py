"""Joins with tables: of a stream's record with a table's present value, and of two tables at each update."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from kafka_rescale.core.pipeline.changes import Change, TableProcessor
from kafka_rescale.core.pipeline.processor import Processor, TaskContext
from kafka_rescale.core.pipeline.stores.table_stores import TimestampedKeyValueStore, ValueAndTimestamp
from kafka_rescale.core.pipeline.table_logic import Getter, MaterializedTable, Reader, TableLogic
from kafka_rescale.core.pipeline.task import Headers

Joiner = Callable[[Any, Any], Any]
"""Takes the left and the right value. In left and outer joins, ``None`` stands for a side that has no value."""


class Side(Enum):
    """The kind of a join, as seen from the table whose update is being joined."""

    INNER = "both sides have to be there"
    LEFT = "the other side may be missing"
    RIGHT = "this side may be missing"
    OUTER = "either side may be missing"


class StreamTableJoin(Processor):
    """Joins a stream with a table, as ``KStreamKTableJoinProcessor`` does without a grace period."""

    def __init__(self, context: TaskContext, get: Getter, joiner: Joiner, is_left: bool) -> None:
        self._context, self._get, self._joiner, self._is_left = context, get, joiner, is_left

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if value is None or (key is None and not self._is_left):
            self._context.dropped += 1
            return
        found = None if key is None else self._get(key)
        if self._is_left or found is not None:
            self.forward(key, self._joiner(value, None if found is None else found.value), timestamp, headers)


class TableTableJoin(Processor):
    """One side of a join of tables: ``KTableKTableInnerJoin``, ``…LeftJoin``, ``…RightJoin``, ``…OuterJoin``.

    :param get: reads the other table.
    :param joiner: takes this side's value and the other side's value.
    :param side: the kind of join, as seen from this side.
    :param sends_old: whether a later operation needs the old values.
    """

    def __init__(self, context: TaskContext, get: Getter, joiner: Joiner, side: Side, sends_old: bool) -> None:
        self._context, self._get, self._joiner = context, get, joiner
        self._side, self._sends_old = side, sends_old

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None:
            self._context.dropped += 1
            return
        found = self._get(key)
        if found is None:
            if self._side in {Side.INNER, Side.RIGHT} or (value.new is None and value.old is None):
                return
            found = ValueAndTimestamp(None, -1)
        new = self._joined(value.new, found.value)
        old = self._joined(value.old, found.value) if self._sends_old else None
        self.forward(key, Change(new, old), max(timestamp, found.timestamp), headers)

    def _joined(self, here: Any, there: Any) -> Any:
        if here is None and (self._side in {Side.INNER, Side.LEFT} or there is None):
            return None
        return self._joiner(here, there)


class JoinMerge(TableProcessor):
    """Hands on the results of both sides of a join of tables, as ``KTableKTableJoinMerger`` does."""

    def __init__(self, store: TimestampedKeyValueStore | None, sends_old: bool) -> None:
        super().__init__(store, sends_old)
        self._store = store

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if self._store is not None:
            self._store.put(key, value.new, timestamp, timestamp, headers)
        self.hand_on(key, value if self._sends_old else Change(value.new, None), timestamp, headers)


class JoinedTable(TableLogic):
    """The table that a join of tables makes. It has a store only if the user has named the store."""

    def __init__(
        self, left: TableLogic, right: TableLogic, joiner: Joiner, side: Side, kept: MaterializedTable | None
    ) -> None:
        self._left, self._right, self._joiner, self._side, self._kept = left, right, joiner, side, kept
        if side in {Side.LEFT, Side.OUTER}:
            left.send_old()
        if side is Side.OUTER:
            right.send_old()
        self.left_reader, self.right_reader = left.reader(), right.reader()

    def reader(self) -> Reader:
        if self._kept is not None:
            return self._kept.reader()
        stores = dict.fromkeys((*self.left_reader.stores, *self.right_reader.stores))
        return Reader(tuple(stores), self._getter)

    def send_old(self, *, force: bool = True) -> bool:
        self._left.send_old()
        self._right.send_old()
        return super().send_old()

    def from_left(self, context: TaskContext) -> Processor:
        """Return the processor that takes the updates of the left table."""
        get = self.right_reader.getter(context)
        return TableTableJoin(context, get, self._joiner, self._side, self.sends_old)

    def from_right(self, context: TaskContext) -> Processor:
        """Return the processor that takes the updates of the right table."""
        get = self.left_reader.getter(context)
        side = Side.RIGHT if self._side is Side.LEFT else self._side
        return TableTableJoin(context, get, lambda right, left: self._joiner(left, right), side, self.sends_old)

    def merge(self, context: TaskContext) -> Processor:
        """Return the processor where the results of both sides meet."""
        return JoinMerge(None if self._kept is None else self._kept.open(context), self.sends_old)

    def _getter(self, context: TaskContext) -> Getter:
        get_left, get_right = self.left_reader.getter(context), self.right_reader.getter(context)
        needs_left, needs_right = self._side is not Side.OUTER, self._side is Side.INNER

        def get(key: Any) -> ValueAndTimestamp | None:
            left, right = get_left(key), get_right(key)
            if (left is None and (needs_left or right is None)) or (right is None and needs_right):
                return None
            value = self._joiner(left and left.value, right and right.value)
            times = [side.timestamp for side in (left, right) if side is not None]
            return None if value is None else ValueAndTimestamp(value, max(times))

        return get
