"""One task's share of one store: sorted rows of a saved state, and later changes in memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_rescale.core.pipeline.stores.sorted_keys import SortedKeys
from kafka_rescale.core.pipeline.task import Entry, Headers
from kafka_rescale.core.processing.expiry import Expiry

SCHEMA = pa.schema([("key", pa.large_binary()), ("value", pa.large_binary()), ("timestamp", pa.int64())])
"""A row without a value is a deletion of its key."""

Log = Callable[[bytes, bytes | None, int, Headers], None]
"""Takes a changelog record: key, value, timestamp in ms, headers."""


class SortedRows:
    """Rows in the order of their keys, read directly from the Arrow table.

    Making Python objects of a million rows takes more than a second. A run that touches few rows doesn't need
    them.

    :param rows: rows of ``SCHEMA``, sorted by key, each key once.
    """

    def __init__(self, rows: Any) -> None:
        self.table = rows.combine_chunks()
        self._keys, self._values = _Bytes(self.table["key"]), _Bytes(self.table["value"])
        self._timestamps = self.table["timestamp"].to_numpy()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def get(self, key: bytes) -> Entry | None:
        """Return the entry of a key."""
        at = bisect_left(self._keys, key)
        return self._entry(at) if at < len(self) and self._keys[at] == key else None

    def range(self, first: bytes, last: bytes) -> Iterator[tuple[bytes, Entry]]:
        """Yield entries in the order of their keys, both ends inclusive."""
        for at in range(bisect_left(self._keys, first), bisect_right(self._keys, last)):
            yield self._keys[at], self._entry(at)

    def _entry(self, at: int) -> Entry:
        return Entry(self._values[at], int(self._timestamps[at]))


class TaskStore:
    """The entries of a store; every change also goes to the changelog.

    :param log: takes the changelog records.
    :param expiry: tells which entries no file has to keep.
    """

    def __init__(self, log: Log, expiry: Expiry | None = None) -> None:
        self._log, self._expiry = log, expiry
        self._base = SortedRows(SCHEMA.empty_table())
        self._changed: dict[bytes, Entry | None] = {}
        self._sorted: SortedKeys | None = None
        self._unsaved: set[bytes] = set()

    def get(self, key: bytes) -> Entry | None:
        """Return the entry of a key."""
        found = self._changed.get(key, _UNCHANGED)
        return self._base.get(key) if found is _UNCHANGED else found

    def put(self, key: bytes, value: bytes | None, timestamp_ms: int, headers: Headers = ()) -> None:
        """Set an entry, or delete it, and log the change with these headers."""
        self._log(key, value, timestamp_ms, headers)
        self.restore(key, value, timestamp_ms)

    def range(self, first: bytes, last: bytes) -> Iterator[tuple[bytes, Entry]]:
        """Yield entries in the order of their keys, both ends inclusive. A later ``put`` changes none."""
        if self._sorted is None:
            self._sorted = SortedKeys(self._changed)
        changed = [(key, self._changed[key]) for key in self._sorted.range(first, last)]
        return _merged(self._base.range(first, last), changed)

    def restore(self, key: bytes, value: bytes | None, timestamp_ms: int) -> None:
        """Take over a record of the changelog."""
        if self._sorted is not None and key not in self._changed:
            self._sorted.add(key)
        self._changed[key] = None if value is None else Entry(value, timestamp_ms)
        self._unsaved.add(key)

    def load(self, base: Any, deltas: list[Any]) -> None:
        """Begin with a saved state.

        :param base: rows of ``SCHEMA``, sorted.
        :param deltas: tables of rows that change the base, in their order.
        """
        self._base = SortedRows(base)
        self._changed.clear()
        self._sorted = None
        for delta in deltas:
            keys, values = delta["key"].to_pylist(), delta["value"].to_pylist()
            for key, value, at in zip(keys, values, delta["timestamp"].to_pylist(), strict=True):
                self._changed[key] = None if value is None else Entry(value, at)
        self._unsaved.clear()

    def unsaved(self) -> Any:
        """Return the rows that have changed since the last save, sorted."""
        return _rows({key: self._changed[key] for key in self._unsaved})

    def changed(self) -> Any:
        """Return the rows that differ from the base, sorted."""
        return _rows(self._changed)

    def all_rows(self) -> Any:
        """Return all live rows, sorted, without expired rows."""
        rows = self._live_rows()
        if self._expiry is None or not rows.num_rows:
            return rows
        times = np.fromiter(map(self._expiry.time_of, rows["key"].to_pylist()), np.int64, rows.num_rows)
        return rows.filter(pa.array(times >= times.max() - self._expiry.retention_ms))

    def _live_rows(self) -> Any:
        if not self._changed:
            return self._base.table
        changed = _rows(self._changed)
        kept = self._base.table.filter(pc.invert(pc.is_in(self._base.table["key"], changed["key"])))
        live = changed.filter(pc.is_valid(changed["value"]))
        return pa.concat_tables([kept, live]).sort_by("key")

    def saved(self) -> None:
        """Note that all changes have been saved."""
        self._unsaved.clear()


class _Bytes:
    """A column of byte strings as a sequence for ``bisect``."""

    def __init__(self, column: Any) -> None:
        array = column.chunk(0) if column.num_chunks else pa.array([], pa.large_binary())
        _, offsets, data = array.buffers()
        self._offsets = np.frombuffer(offsets, np.int64)[array.offset :] if offsets else np.zeros(1, np.int64)
        self._data = memoryview(data) if data else memoryview(b"")
        self._count = len(array)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: int) -> bytes:
        return bytes(self._data[self._offsets[at] : self._offsets[at + 1]])


_UNCHANGED = Entry(b"", -1)


def _rows(entries: dict[bytes, Entry | None]) -> Any:
    keys = sorted(entries)
    found = [entries[key] for key in keys]
    columns = [keys, [e and e.value for e in found], [e.timestamp_ms if e else 0 for e in found]]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def _merged(
    base: Iterator[tuple[bytes, Entry]], changed: list[tuple[bytes, Entry | None]]
) -> Iterator[tuple[bytes, Entry]]:
    """Merge two sorted sequences of rows. For a key in both, the second sequence decides."""
    old = next(base, None)
    for key, entry in changed:
        while old is not None and old[0] < key:
            yield old
            old = next(base, None)
        if old is not None and old[0] == key:
            old = next(base, None)
        if entry is not None:
            yield key, entry
    if old is not None:
        yield old
        yield from base
