"""The views of the stores of tables. They hide expired entries and lead through the record cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kafka_rescale.core.pipeline.processor import Mark, TaskContext
from kafka_rescale.core.pipeline.task import Entry, Headers, StoreDefinition, StoreView

TIME_AT = {"timestamped-window": slice(-12, -4), "session": slice(-16, -8)}
"""The place of the time in a key: the start of the window, or the end of the session."""


def table_view(context: TaskContext, store: StoreDefinition) -> StoreView:
    """Return the view of a table's store. All operations of a task that use the store share one cache."""
    view = context.views[store.name]
    if store.kind in TIME_AT:
        at, latest = TIME_AT[store.kind], context.mark(f"@{store.name}")
        view = ForgetfulView(view, latest, store.retention_ms or 0, lambda key: int.from_bytes(key[at], "big"))
    if context.cache is None:
        return view
    timed = 0 if store.kind == "session" else 8
    return context.cache.store(store.name, view, timed=timed, windowed=store.kind in TIME_AT)


@dataclass(frozen=True)
class ForgetfulView:
    """A store that remembers the latest time that was put into it, and hides expired entries.

    An entry is expired if it is older than the latest time by the retention time or more. The view hides such an
    entry even if the runner has not dropped it yet (``AbstractRocksDBSegmentedBytesStore``).

    :param time_of: takes a key; returns the time in it, in ms.
    """

    below: StoreView
    latest: Mark
    retention_ms: int
    time_of: Callable[[bytes], int]

    def get(self, key: bytes) -> Entry | None:
        """Return the entry of a key."""
        return None if self._is_forgotten(key) else self.below.get(key)

    def put(self, key: bytes, value: bytes | None, timestamp_ms: int, headers: Headers = ()) -> None:
        """Set an entry, or delete it, and remember its time."""
        self.latest.value = max(self.latest.value, self.time_of(key))
        self.below.put(key, value, timestamp_ms, headers)

    def range(self, first: bytes, last: bytes) -> Iterator[tuple[bytes, Entry]]:
        """Yield entries in the order of their keys, both ends inclusive."""
        return (found for found in self.below.range(first, last) if not self._is_forgotten(found[0]))

    def _is_forgotten(self, key: bytes) -> bool:
        return self.time_of(key) <= self.latest.value - self.retention_ms
