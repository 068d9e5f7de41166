"""Stores that have times in their keys."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from kafka_rescale.core.pipeline.processor import TaskContext
from kafka_rescale.core.pipeline.stores.table_stores import StoreSerdes, TableStore, ValueAndTimestamp
from kafka_rescale.core.pipeline.stores.table_views import table_view
from kafka_rescale.core.pipeline.task import Entry, Headers, StoreDefinition
from kafka_rescale.core.pipeline.windows import Windowed

_WINDOW = struct.Struct(">qI")
_SESSION = struct.Struct(">qq")
_LATEST = 2**63 - 1


class WindowStore(TableStore):
    """The store ``TimestampedWindowStore``. It has a value per key and start of a window.

    :param size_ms: the size of the windows in ms.
    """

    def __init__(
        self, context: TaskContext, definition: StoreDefinition, serdes: StoreSerdes, size_ms: int
    ) -> None:
        super().__init__(table_view(context, definition), serdes)
        self._size_ms = size_ms

    def fetch(self, key: Any, start: int) -> ValueAndTimestamp | None:
        """Return the value and the timestamp of a window."""
        return self._get(self._serdes.encode("key", key) + _WINDOW.pack(start, 0))

    def put(
        self, key: Any, start: int, value: Any, timestamp: int, record_timestamp: int, headers: Headers
    ) -> None:
        """Store a value, or delete the window (``None``).

        :param record_timestamp: the timestamp of the record that is being processed. ``headers`` belong to the
            same record.
        """
        raw = self._serdes.encode("key", key) + _WINDOW.pack(start, 0)
        self._put(raw, value, timestamp, record_timestamp, headers)

    def _key_of(self, raw: bytes) -> Windowed:
        start, _ = _WINDOW.unpack(raw[-_WINDOW.size :])
        return Windowed(self._serdes.decode_key(raw[: -_WINDOW.size]), start, start + self._size_ms)


class JoinWindowStore:
    """A window store that keeps all records. Records of the same key and time differ by a number.

    After a restart, Kafka Streams counts from 1 again and overwrites records of the same key, time and number.
    Here the count goes on.
    """

    def __init__(self, context: TaskContext, definition: StoreDefinition, serdes: StoreSerdes) -> None:
        self._view, self._serdes = context.views[definition.name], serdes
        self._latest = context.mark(f"@{definition.name}")
        self._retention_ms = definition.retention_ms or 0
        self._number = context.mark(f"#{definition.name}", 0)

    def put(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """Add a record."""
        self._number.value = (self._number.value + 1) & 0x7FFFFFFF
        raw = self._serdes.encode("key", key) + _WINDOW.pack(timestamp, self._number.value)
        if value is None:
            # The changelog gets the tombstone like any other record. But the store has no entry for it, and the
            # latest time of the store does not change.
            self._view.put(raw, None, timestamp, headers)
            return
        self._latest.value = max(self._latest.value, timestamp)
        self._view.put(raw, self._serdes.encode("value", value), timestamp, headers)

    def fetch(self, key: Any, earliest: int, latest: int) -> Iterator[tuple[int, Any]]:
        """Yield time and value of a key's records, in the order of their times.

        :param earliest: the earliest time in ms, inclusive.
        :param latest: the latest time in ms, inclusive.
        """
        forgotten = self._latest.value - self._retention_ms
        raw, earliest = self._serdes.encode("key", key), max(earliest, forgotten + 1)
        if latest < earliest:
            return
        last = raw + _WINDOW.pack(latest, 0xFFFFFFFF)
        for found, entry in self._view.range(raw + _WINDOW.pack(max(earliest, 0), 0), last):
            if len(found) == len(last):
                yield _WINDOW.unpack(found[-12:])[0], self._serdes.decode(entry.value)


class Session(NamedTuple):
    """A session of a key.

    :param start: the start in ms, inclusive.
    :param end: the end in ms, inclusive.
    """

    start: int
    end: int
    value: Any = None


class SessionStore(TableStore):
    """The store ``SessionStore``. It has a value per key, end and start of a session."""

    def __init__(self, context: TaskContext, definition: StoreDefinition, serdes: StoreSerdes) -> None:
        super().__init__(table_view(context, definition), serdes)

    def find(self, key: Any, earliest_end: int, latest_start: int) -> list[Session]:
        """Return sessions of a key in the order of their ends.

        :param earliest_end: only sessions that end at this time or later.
        :param latest_start: only sessions that start at this time or earlier.
        """
        raw = self._serdes.encode("key", key)
        last = raw + _SESSION.pack(_LATEST, _LATEST)
        found = []
        for session_key, entry in self._view.range(raw + _SESSION.pack(max(earliest_end, 0), 0), last):
            if len(session_key) == len(last):
                end, start = _SESSION.unpack(session_key[-_SESSION.size :])
                if start <= latest_start:
                    found.append(Session(start, end, self._serdes.decode(entry.value)))
        return found

    def get(self, key: Any, session: Session) -> Any:
        """Return the value of a session."""
        found = self._get(self._serdes.encode("key", key) + _SESSION.pack(session.end, session.start))
        return None if found is None else found.value

    def put(self, key: Any, session: Session, timestamp: int, headers: Headers) -> None:
        """Store a session, or delete it if it has no value.

        :param timestamp: the timestamp of the record that is being processed. ``headers`` belong to this record.
        """
        raw = self._serdes.encode("key", key) + _SESSION.pack(session.end, session.start)
        self._put(raw, session.value, timestamp, timestamp, headers)

    def _key_of(self, raw: bytes) -> Windowed:
        end, start = _SESSION.unpack(raw[-_SESSION.size :])
        return Windowed(self._serdes.decode_key(raw[: -_SESSION.size]), start, end)

    def _time_of(self, raw: bytes, new: Entry | None, record_ms: int) -> int:
        return self._key_of(raw).end
