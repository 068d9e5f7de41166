"""Stores with times in their keys, and what they have forgotten.

A store remembers the latest time that was put into it. What is older than that by the retention time or more can't
be read any more, whether the runner has dropped it already or not (``AbstractRocksDBSegmentedBytesStore``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from kafka_rescale.core.pipeline.processor import TaskContext
from kafka_rescale.core.pipeline.stores import StoreSerdes, ValueAndTimestamp
from kafka_rescale.core.pipeline.task import Headers, StoreDefinition

_WINDOW = struct.Struct(">qI")
_SESSION = struct.Struct(">qq")
_LATEST = 2**63 - 1


class _Forgetful:
    """What the stores with times in their keys have in common."""

    def __init__(self, context: TaskContext, definition: StoreDefinition, serdes: StoreSerdes) -> None:
        self._view, self._serdes = context.views[definition.name], serdes
        self._latest = context.mark(f"@{definition.name}")
        self._retention_ms = definition.retention_ms or 0

    @property
    def _forgotten(self) -> int:
        """The latest time that can't be read any more."""
        return self._latest.value - self._retention_ms

    def _put(self, time: int, key: bytes, value: Any, timestamp: int) -> None:
        self._latest.value = max(self._latest.value, time)
        self._view.put(key, None if value is None else self._serdes.encode("value", value), timestamp)


class WindowStore(_Forgetful):
    """``TimestampedWindowStore``: a value per key and start of a window."""

    def fetch(self, key: Any, start: int) -> ValueAndTimestamp | None:
        """Return what is stored for a window."""
        if start <= self._forgotten:
            return None
        entry = self._view.get(self._serdes.encode("key", key) + _WINDOW.pack(start, 0))
        return None if entry is None else ValueAndTimestamp(self._serdes.decode(entry.value), entry.timestamp_ms)

    def put(self, key: Any, start: int, value: Any, timestamp: int, record_timestamp: int) -> None:
        """Store a value, or delete the window (``None``).

        :param record_timestamp: of the record that is being processed.
        """
        raw = self._serdes.encode("key", key) + _WINDOW.pack(start, 0)
        self._put(start, raw, value, record_timestamp if value is None else timestamp)


class JoinWindowStore(_Forgetful):
    """A window store that keeps all records: of one key and time, they are told apart by a number.

    Kafka Streams counts from 1 again after a restart, and overwrites what it meets; here the count goes on.
    """

    def __init__(self, context: TaskContext, definition: StoreDefinition, serdes: StoreSerdes) -> None:
        super().__init__(context, definition, serdes)
        self._number = context.mark(f"#{definition.name}", 0)

    def put(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """Add a record."""
        self._number.value = (self._number.value + 1) & 0x7FFFFFFF
        raw = self._serdes.encode("key", key) + _WINDOW.pack(timestamp, self._number.value)
        if value is None:
            # Logged like any other record, but it neither is in the store nor lets its time go on.
            self._view.put(raw, None, timestamp, headers)
            return
        self._latest.value = max(self._latest.value, timestamp)
        self._view.put(raw, self._serdes.encode("value", value), timestamp, headers)

    def fetch(self, key: Any, earliest: int, latest: int) -> Iterator[tuple[int, Any]]:
        """Yield time and value of a key's records, in the order of their times.

        :param earliest: in ms, inclusive; likewise ``latest``.
        """
        raw, earliest = self._serdes.encode("key", key), max(earliest, self._forgotten + 1)
        if latest < earliest:
            return
        last = raw + _WINDOW.pack(latest, 0xFFFFFFFF)
        for found, entry in self._view.range(raw + _WINDOW.pack(max(earliest, 0), 0), last):
            if len(found) == len(last):
                yield _WINDOW.unpack(found[-12:])[0], self._serdes.decode(entry.value)


class Session(NamedTuple):
    """A session of a key.

    :param start: in ms, inclusive; likewise ``end``.
    """

    start: int
    end: int
    value: Any = None


class SessionStore(_Forgetful):
    """``SessionStore``: a value per key, end and start of a session."""

    def find(self, key: Any, earliest_end: int, latest_start: int) -> list[Session]:
        """Return a key's sessions that end and start within these times, in the order of their ends."""
        raw, earliest_end = self._serdes.encode("key", key), max(earliest_end, self._forgotten + 1, 0)
        last = raw + _SESSION.pack(_LATEST, _LATEST)
        found = []
        for session_key, entry in self._view.range(raw + _SESSION.pack(earliest_end, 0), last):
            if len(session_key) == len(last):
                end, start = _SESSION.unpack(session_key[-16:])
                if start <= latest_start:
                    found.append(Session(start, end, self._serdes.decode(entry.value)))
        return found

    def get(self, key: Any, session: Session) -> Any:
        """Return what is stored for a session."""
        if session.end <= self._forgotten:
            return None
        entry = self._view.get(self._serdes.encode("key", key) + _SESSION.pack(session.end, session.start))
        return None if entry is None else self._serdes.decode(entry.value)

    def put(self, key: Any, session: Session, timestamp: int) -> None:
        """Store a session, or delete it if it has no value.

        :param timestamp: of the record that is being processed.
        """
        raw = self._serdes.encode("key", key) + _SESSION.pack(session.end, session.start)
        self._put(session.end, raw, session.value, timestamp)
