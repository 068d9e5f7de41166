"""Stores as the operations see them: their values over the bytes that their changelogs hold."""

from __future__ import annotations

from typing import Any, NamedTuple

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.serdes import Serde
from kafka_rescale.core.pipeline.task import StoreView


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


class TimestampedKeyValueStore:
    """``TimestampedKeyValueStore``: a changelog record has the entry's timestamp, a tombstone the record's."""

    def __init__(self, view: StoreView, serdes: StoreSerdes) -> None:
        self._view, self._serdes = view, serdes

    def get(self, key: Any) -> ValueAndTimestamp | None:
        """Return what is stored for a key."""
        entry = self._view.get(self._serdes.encode("key", key))
        return None if entry is None else ValueAndTimestamp(self._serdes.decode(entry.value), entry.timestamp_ms)

    def put(self, key: Any, value: Any, timestamp: int, record_timestamp: int) -> None:
        """Store a value, or delete the key (``None``).

        :param record_timestamp: of the record that is being processed.
        """
        raw = self._serdes.encode("key", key)
        if value is None:
            self._view.put(raw, None, record_timestamp)
        else:
            self._view.put(raw, self._serdes.encode("value", value), timestamp)
