"""Stores as the operations see them. They read and write values; the changelogs hold the bytes of these values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.serdes import Serde
from kafka_rescale.core.pipeline.stores.record_cache import CachedStore
from kafka_rescale.core.pipeline.task import Entry, Headers, StoreView

Written = Callable[[Any, Any, Any, int, Headers], None]
"""Takes an update that a cache has written: key, new value, old value, timestamp in ms, and headers."""


class ValueAndTimestamp(NamedTuple):
    """A value, and the event time in ms of the newest record in it, as in the Java class of this name."""

    value: Any
    timestamp: int


class StoreSerdes(NamedTuple):
    """The serdes of a store's keys and values. Without a declared serde (``None``), they are bytes."""

    name: str
    key: Serde | None
    value: Serde | None

    def encode(self, part: str, value: Any) -> bytes:
        """Return the bytes of a key or a value.

        :raises InvalidInput: the serde can't write the key or the value.
        """
        serde = self.key if part == "key" else self.value
        try:
            if serde is not None:
                return serde.encode(value)
            if isinstance(value, bytes):
                return value
            found = f"a {type(value).__name__} and no serde"
        except Exception as error:
            found = f"a {type(value).__name__}: {error}"[:200]
        raise InvalidInput(
            f"{part} for store {self.name!r}",
            found=found,
            expected=f"a {part} that the store's serde can write",
            remedy=f"Name the {part} serde where the store is made, or where its stream or its grouping is made.",
        )

    def decode(self, data: bytes) -> Any:
        """Return the value of bytes that were put.

        :raises InvalidInput: another serde has written the bytes.
        """
        if self.value is None:
            return data
        try:
            return self.value.decode(data)
        except Exception as error:
            raise InvalidInput(
                f"value in store {self.name!r}",
                found=f"bytes that its serde can't read: {error}"[:200],
                expected="the serde with which the store was filled",
                remedy="Name that serde again. Or give the store another name; then it begins without state.",
            ) from error

    def decode_key(self, data: bytes) -> Any:
        """Return the key of bytes that were put."""
        return data if self.key is None else self.key.decode(data)


class TableStore(ABC):
    """The store of a table. It reads and writes values; a cache may keep its updates back.

    :param view: the view that :func:`~kafka_rescale.core.pipeline.stores.table_views.table_view` returns.
    """

    def __init__(self, view: StoreView, serdes: StoreSerdes) -> None:
        self._view, self._serdes = view, serdes

    @property
    def is_cached(self) -> bool:
        """Whether a cache keeps updates back. Then the store hands them on when the cache writes them."""
        return isinstance(self._view, CachedStore)

    def listen(self, written: Written, *, sends_old: bool) -> None:
        """Call a function with every update that the cache writes. Without a cache, the function is never called.

        :param sends_old: whether the function gets the old values as well.
        """

        def decoded(raw: bytes, new: Entry | None, old: Entry | None, record_ms: int, headers: Headers) -> None:
            key, timestamp = self._key_of(raw), self._time_of(raw, new, record_ms)
            written(key, self._value_of(new), self._value_of(old), timestamp, headers)

        if isinstance(self._view, CachedStore):
            self._view.listen(decoded, sends_old=sends_old)

    @abstractmethod
    def _key_of(self, raw: bytes) -> Any:
        """Return a key as the operations behind the table see it."""

    def _value_of(self, entry: Entry | None) -> Any:
        return None if entry is None else self._serdes.decode(entry.value)

    def _time_of(self, raw: bytes, new: Entry | None, record_ms: int) -> int:
        """Return the timestamp of an update that is handed on."""
        return record_ms if new is None else new.timestamp_ms

    def _get(self, raw: bytes) -> ValueAndTimestamp | None:
        entry = self._view.get(raw)
        return None if entry is None else ValueAndTimestamp(self._serdes.decode(entry.value), entry.timestamp_ms)

    def _put(self, raw: bytes, value: Any, timestamp: int, record_timestamp: int, headers: Headers) -> None:
        encoded = None if value is None else self._serdes.encode("value", value)
        at = record_timestamp if value is None else timestamp
        if isinstance(self._view, CachedStore):
            self._view.keep(raw, encoded, at, record_timestamp, headers)
        else:
            self._view.put(raw, encoded, at)


class TimestampedKeyValueStore(TableStore):
    """The store ``TimestampedKeyValueStore``.

    A record in its changelog has the timestamp of the entry. A tombstone has the timestamp of the record that was
    being processed.
    """

    def get(self, key: Any) -> ValueAndTimestamp | None:
        """Return the value and the timestamp of a key."""
        return self._get(self._serdes.encode("key", key))

    def put(self, key: Any, value: Any, timestamp: int, record_timestamp: int, headers: Headers) -> None:
        """Store a value, or delete the key (``None``).

        :param record_timestamp: the timestamp of the record that is being processed. ``headers`` belong to the
            same record.
        """
        self._put(self._serdes.encode("key", key), value, timestamp, record_timestamp, headers)

    def _key_of(self, raw: bytes) -> Any:
        return self._serdes.decode_key(raw)
