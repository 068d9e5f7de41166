"""The record cache of a task. It keeps updates of stores back, and writes and hands on the latest of each key.

The cache does this at each commit, and earlier if it is full (an eviction). So the evictions decide which updates
appear in changelogs and outputs. For this reason, the cache counts every byte as ``ThreadCache``, ``NamedCache``
and the caching stores of Kafka Streams do.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kafka_rescale.core.pipeline.stores.sorted_keys import SortedKeys
from kafka_rescale.core.pipeline.task import Entry, Headers, StoreView

Write = Callable[[bytes, Entry | None, Entry | None, int, Headers], None]
"""Takes an update that the cache has written: key, new entry, old entry, the record's timestamp in ms, headers."""

_LINKS_BYTES = 24
_SEGMENT_BYTES = 8
_CONTEXT_BYTES = 1 + 8 + 8 + 4
"""Bytes of ``LRUCacheEntry`` and ``ProcessorRecordContext``: a flag, timestamp, offset and partition."""


@dataclass(slots=True)
class _Kept:
    """The entry of a key in the cache.

    :param at_ms: the timestamp with which the update is logged.
    :param record_ms: the timestamp of the record that made the update. ``headers`` and ``topic`` belong to the
        same record.
    :param is_dirty: whether the cache has not written the update yet.
    """

    entry: Entry | None
    at_ms: int
    record_ms: int
    headers: Headers
    topic: str
    is_dirty: bool
    bytes: int


class RecordCache:
    """The updates that all stores of one task keep back.

    :param max_bytes: most bytes of all stores together.
    :param names: by the pipeline's own name of a topic, its full name. The size of an entry includes the full name
        of its record's topic.
    """

    def __init__(self, max_bytes: int, names: Mapping[str, str]) -> None:
        self.max_bytes, self._names = max_bytes, names
        self.topic, self.bytes = "", 0
        self._stores: dict[str, CachedStore] = {}

    def store(self, name: str, view: StoreView, *, timed: int, windowed: bool) -> CachedStore:
        """Return the cached store of this name. All operations that read and write the store share it.

        :param timed: number of bytes of the timestamp that Kafka Streams keeps in front of each value.
        :param windowed: whether the store has times in its keys. For such stores, Kafka Streams keeps the number
            of a segment in front of each key, and its cache does not keep entries that were only read.
        """
        if name not in self._stores:
            self._stores[name] = CachedStore(self, view, timed, windowed=windowed)
        return self._stores[name]

    def enter(self, topic: str) -> None:
        """Note that a record of this topic is being processed.

        :param topic: the pipeline's own name of the topic.
        """
        self.topic = self._names.get(topic, topic)

    def flush(self, order: Iterator[str]) -> None:
        """Write all updates that were kept back.

        :param order: names of the stores. Upstream stores must come first: their updates make updates of the
            stores behind them, and those stores keep these back as well.
        """
        for name in order:
            if name in self._stores:
                self._stores[name].flush()


class CachedStore:
    """A store behind a cache (``CachingKeyValueStore``, ``CachingWindowStore``, ``CachingSessionStore``)."""

    def __init__(self, cache: RecordCache, below: StoreView, timed: int, *, windowed: bool) -> None:
        self._cache, self._below, self._timed = cache, below, timed
        self._prefix, self._keeps_reads = _SEGMENT_BYTES if windowed else 0, not windowed
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._sorted: SortedKeys | None = None
        self._dirty: dict[bytes, None] = {}
        self._write: Write | None = None
        self._sends_old = False

    def listen(self, write: Write, *, sends_old: bool) -> None:
        """Call a function with every update that the cache writes.

        :param sends_old: whether the function gets the old entries as well.
        """
        self._write, self._sends_old = write, sends_old

    def get(self, key: bytes) -> Entry | None:
        """Return the entry of a key."""
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return kept.entry
        found = self._below.get(key)
        if found is not None and self._keeps_reads:
            self._put(key, _Kept(found, found.timestamp_ms, -1, (), "", is_dirty=False, bytes=0))
        return found

    def put(self, key: bytes, value: bytes | None, timestamp_ms: int, headers: Headers = ()) -> None:
        """Keep an update back. The log and the record have the same timestamp here (see ``keep``)."""
        self.keep(key, value, timestamp_ms, timestamp_ms, headers)

    def keep(self, key: bytes, value: bytes | None, timestamp_ms: int, record_ms: int, headers: Headers) -> None:
        """Keep an update back. It replaces an earlier update of the same key.

        :param timestamp_ms: the timestamp with which the update is logged.
        :param record_ms: the timestamp of the record that makes the update. ``headers`` belong to the same record.
        """
        entry = None if value is None else Entry(value, timestamp_ms)
        topic = self._cache.topic
        self._put(key, _Kept(entry, timestamp_ms, record_ms, headers, topic, is_dirty=True, bytes=0))

    def range(self, first: bytes, last: bytes) -> Iterator[tuple[bytes, Entry]]:
        """Yield entries in the order of their keys, both ends inclusive.

        A ``put`` during the iteration does not change what it yields.
        """
        if self._sorted is None:
            self._sorted = SortedKeys(self._kept)
        kept = {key: self._kept[key].entry for key in self._sorted.range(first, last)}
        for key in kept:
            # Kafka Streams counts only keys of the same size as the ends of the range as used. These are the
            # entries of one key at different times.
            if len(key) == len(last):
                self._kept.move_to_end(key)
        found = {key: entry for key, entry in self._below.range(first, last) if key not in kept}
        found |= {key: entry for key, entry in kept.items() if entry is not None}
        return iter(sorted(found.items()))

    def flush(self) -> None:
        """Write the updates that were kept back, in the order of each key's latest update."""
        self._write_all({})

    def evict(self) -> None:
        """Drop the entry that was used least recently. If it is unwritten, write all unwritten updates."""
        key, eldest = next(iter(self._kept.items()))
        self._drop(key)
        if eldest.is_dirty:
            del self._dirty[key]
            self._write_all({key: eldest})

    def _put(self, key: bytes, kept: _Kept) -> None:
        kept.bytes = self._bytes(key, kept)
        before = self._kept.pop(key, None)
        self._kept[key] = kept
        if before is None and self._sorted is not None:
            self._sorted.add(key)
        if kept.is_dirty:
            self._dirty.pop(key, None)
            self._dirty[key] = None
        self._cache.bytes += kept.bytes - (0 if before is None else before.bytes)
        # An eviction may put an update into another store. That put then runs this loop for its own store.
        while self._cache.bytes > self._cache.max_bytes and self._kept:
            self.evict()

    def _bytes(self, key: bytes, kept: _Kept) -> int:
        value = 0 if kept.entry is None else self._timed + len(kept.entry.value)
        headers = sum(len(name) + len(content or b"") for name, content in kept.headers)
        return self._prefix + len(key) + _LINKS_BYTES + _CONTEXT_BYTES + len(kept.topic) + headers + value

    def _write_all(self, first: dict[bytes, _Kept]) -> None:
        updates = first | {key: self._kept[key] for key in self._dirty}
        self._dirty.clear()
        for kept in updates.values():
            kept.is_dirty = False
        deleted = [key for key, kept in updates.items() if kept.entry is None and key not in first]
        for key, kept in updates.items():
            self._write_one(key, kept)
        for key in deleted:
            if (gone := self._kept.get(key)) is not None and not gone.is_dirty:
                self._drop(key)

    def _drop(self, key: bytes) -> None:
        self._cache.bytes -= self._kept.pop(key).bytes
        if self._sorted is not None:
            self._sorted.discard(key)

    def _write_one(self, key: bytes, kept: _Kept) -> None:
        old = self._below.get(key) if kept.entry is None or self._sends_old else None
        if kept.entry is None and old is None:
            return
        topic, self._cache.topic = self._cache.topic, kept.topic
        try:
            self._below.put(key, None if kept.entry is None else kept.entry.value, kept.at_ms)
            if self._write is not None:
                self._write(key, kept.entry, old if self._sends_old else None, kept.record_ms, kept.headers)
        finally:
            self._cache.topic = topic
