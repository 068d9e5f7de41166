"""The store of a left or outer join of streams. It keeps, by time, the records that have found no partner yet.

A key of the store is 8 bytes of time, 1 byte of the side (1 left, 0 right), and the record's key
(``TimestampedKeyAndJoinSideSerializer``). A value of the store is a list of the records' values. Each value in the
list has 1 byte of its side in front (``ListSerializer``, ``LeftOrRightValueSerializer``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

from kafka_rescale.core.pipeline.processor import TaskContext
from kafka_rescale.core.pipeline.stores.table_stores import StoreSerdes
from kafka_rescale.core.pipeline.task import StoreDefinition

_HEAD = struct.Struct(">q?")
_LENGTH = struct.Struct(">i")
_VARIABLE_SIZE = b"\x01"
_BEHIND_ALL = b"\x80"


class Lonely(NamedTuple):
    """The records of one side, one key and one time that have found no partner yet.

    :param raw: the key of this entry in the store, in bytes.
    """

    raw: bytes
    key: Any
    timestamp: int
    is_left: bool
    values: tuple[Any, ...]


class OuterJoinStore:
    """The ``ListValueStore`` as joins use it.

    :param left: the serdes of the keys and of the left side's values.
    :param right: the serdes of the keys and of the right side's values.
    """

    def __init__(
        self, context: TaskContext, definition: StoreDefinition, left: StoreSerdes, right: StoreSerdes
    ) -> None:
        self._view, self._name, self._lowest = context.views[definition.name], definition.name, context.lowest
        self._left, self._right = left, right

    def add(self, key: Any, timestamp: int, is_left: bool, value: Any) -> None:
        """Remember a record that has found no partner."""
        raw = self._raw(key, timestamp, is_left)
        entry = self._view.get(raw)
        elements = [] if entry is None else _elements(entry.value)
        serdes = self._left if is_left else self._right
        elements.append(bytes((is_left,)) + serdes.encode("value", value))
        listed = b"".join(_LENGTH.pack(len(e)) + e for e in elements)
        self._view.put(raw, _VARIABLE_SIZE + _LENGTH.pack(len(elements)) + listed, timestamp)
        self._lowest[self._name] = min(self._lowest.get(self._name, b""), raw)

    def forget(self, key: Any, timestamp: int, is_left: bool, record_timestamp: int) -> None:
        """Delete the records of one side, one key and one time, if there are any.

        :param record_timestamp: the timestamp of the record that is being processed.
        """
        raw = self._raw(key, timestamp, is_left)
        if self._view.get(raw) is not None:
            self.delete(raw, record_timestamp)

    def delete(self, raw: bytes, record_timestamp: int) -> None:
        """Delete an entry that :meth:`all` has returned."""
        self._view.put(raw, None, record_timestamp)

    def all(self) -> Iterator[Lonely]:
        """Yield all entries in the order of their times. If times are equal, the right side comes first."""
        entries = self._view.range(self._lowest.get(self._name, b""), _BEHIND_ALL)
        first = next(entries, None)
        self._lowest[self._name] = _BEHIND_ALL if first is None else first[0]
        for raw, entry in chain([first] if first else [], entries):
            timestamp, is_left = _HEAD.unpack(raw[: _HEAD.size])
            serdes = self._left if is_left else self._right
            values = tuple(serdes.decode(element[1:]) for element in _elements(entry.value))
            yield Lonely(raw, serdes.decode_key(raw[_HEAD.size :]), timestamp, is_left, values)

    def _raw(self, key: Any, timestamp: int, is_left: bool) -> bytes:
        return _HEAD.pack(timestamp, is_left) + self._left.encode("key", key)


def _elements(listed: bytes) -> list[bytes]:
    found, at = [], len(_VARIABLE_SIZE) + _LENGTH.size
    while at < len(listed):
        (length,) = _LENGTH.unpack_from(listed, at)
        at += _LENGTH.size
        found.append(listed[at : at + length])
        at += length
    return found
