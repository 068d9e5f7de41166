"""The expiry of a store's entries by the times in their keys. No file has to keep expired entries."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_rescale.core.formats.changelog_formats import FORMATS
from kafka_rescale.core.pipeline.task import StoreDefinition


@dataclass(frozen=True)
class Expiry:
    """The rule of a store: an entry has expired if its time is before the newest time minus the retention.

    :param times: the places of the times in a key, as in ``ChangelogFormat.times``.
    """

    times: tuple[int, ...]
    retention_ms: int

    @classmethod
    def of(cls, store: StoreDefinition) -> Expiry | None:
        """Return the rule of a store. None if the store keeps everything."""
        times = FORMATS[store.kind].times
        return cls(times, store.retention_ms) if times and store.retention_ms is not None else None

    def time_of(self, key: bytes) -> int:
        """Return the latest time in a key, in ms since the epoch. For a session, this is its end."""
        begins = (at if at >= 0 else len(key) + at for at in self.times)
        return max(int.from_bytes(key[begin : begin + 8], "big", signed=True) for begin in begins)
