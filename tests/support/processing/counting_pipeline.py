"""A pipeline of one sub-topology, small enough to be checked by eye: it counts records per key.

Its output shows in which order it saw its inputs, and that its stream time went on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafka_rescale.core.pipeline.stores.record_cache import RecordCache
from kafka_rescale.core.pipeline.task import Emitted, Record, StoreDefinition, StoreView

SOURCES, SINK, STORE = ("left", "right"), "out", "counts"


@dataclass(frozen=True)
class Counting:
    """The sub-topology."""

    id: int = 0
    sources: tuple[str, ...] = SOURCES
    sinks: tuple[str, ...] = (SINK,)
    stores: tuple[StoreDefinition, ...] = (StoreDefinition(STORE, "timestamped-key-value"),)

    def processor(
        self, stores: Mapping[str, StoreView], partition: int, cache: RecordCache | None = None
    ) -> CountingProcessor:
        return CountingProcessor(stores[STORE])


class CountingProcessor:
    """Counts the records of a key. The value ``forget`` deletes the key."""

    def __init__(self, counts: StoreView) -> None:
        self._counts = counts
        self._stream_time = -1

    def process(self, record: Record) -> list[Emitted]:
        key = record.key or b""
        self._stream_time = max(self._stream_time, record.timestamp_ms)
        if record.value == b"forget":
            self._counts.put(key, None, record.timestamp_ms)
            return []
        known = self._counts.get(key)
        count = b"%d" % ((int(known.value) if known else 0) + 1)
        self._counts.put(key, count, record.timestamp_ms)
        value = b"%s|%s|%s|%d" % (count, record.topic.encode(), record.value or b"", self._stream_time)
        return [Emitted(SINK, key, value, record.timestamp_ms, record.headers)]

    def process_batch(self, records: Sequence[Record]) -> list[Emitted]:
        return [emitted for record in records for emitted in self.process(record)]

    def flush(self) -> list[Emitted]:
        return []

    def stream_time(self) -> int:
        return self._stream_time

    def dropped_records(self) -> int:
        return 0

    def checkpoint(self) -> str:
        return str(self._stream_time)

    def restore(self, checkpoint: str) -> None:
        self._stream_time = int(checkpoint or -1)
