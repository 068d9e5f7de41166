"""Stores as the operations see them: their values over the bytes that their changelogs hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.serdes import Serde
from kafka_rescale.core.pipeline.stores.record_cache import CachedStore
from kafka_rescale.core.pipeline.task import Entry, Headers, StoreView

Written = Callable[[Any, Any, Any, int, Headers], None]
"""Takes an update that a cache has written: key, new value, old value, timestamp in ms, headers."""


class ValueAndTimestamp(NamedTuple):
    """As the class of this name: a value, and the event time in ms of the newest record that went into it."""

    value: Any
    timestamp: int


class StoreSerdes(NamedTuple):
    """How a store's keys and values are written; ``None`` if no serde is declared: bytes."""

    name: str
    key: Serde | None
    value: Serde | None

    def encode(self, part: str, value: Any) -> bytes:
        """Return the bytes of a key or a value.

        :raises InvalidInput: the serde can't write it.
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
            remedy=f"Name the {part} serde where the store is made, or where its stream or its grouping is.",
        )

    def decode(self, data: bytes) -> Any:
        """Return the value of bytes that were put.

        :raises InvalidInput: they were put by another serde.
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
                remedy="Name that serde again; or give the store another name, by which it begins without state.",
            ) from error

    def decode_key(self, data: bytes) -> Any:
        """Return the key of bytes that were put."""
        return data if self.key is None else self.key.decode(data)


class TableStore(ABC):
    """The store of a table: values over the bytes of a view, whose updates a cache may keep back.

    :param view: of :func:`~kafka_rescale.core.pipeline.stores.table_views.table_view`.
    """

    def __init__(self, view: StoreView, serdes: StoreSerdes) -> None:
        self._view, self._serdes = view, serdes

    @property
    def is_cached(self) -> bool:
        """Whether updates are handed on when the cache writes them, not when they are put."""
        return isinstance(self._view, CachedStore)

    def listen(self, written: Written, *, sends_old: bool) -> None:
        """Hand on what a cache writes; without a cache, nothing comes.

        :param sends_old: whether the old values are to be read for that.
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
    """``TimestampedKeyValueStore``: a changelog record has the entry's timestamp, a tombstone the record's."""

    def get(self, key: Any) -> ValueAndTimestamp | None:
        """Return what is stored for a key."""
        return self._get(self._serdes.encode("key", key))

    def put(self, key: Any, value: Any, timestamp: int, record_timestamp: int, headers: Headers) -> None:
        """Store a value, or delete the key (``None``).

        :param record_timestamp: of the record that is being processed; likewise ``headers``.
        """
        self._put(self._serdes.encode("key", key), value, timestamp, record_timestamp, headers)

    def _key_of(self, raw: bytes) -> Any:
        return self._serdes.decode_key(raw)
