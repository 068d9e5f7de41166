"""Runs pipelines in memory: stores, changelogs, repartition topics with one partition each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kafka_rescale.core.pipeline import Pipeline
from kafka_rescale.core.pipeline.task import Emitted, Entry, Headers, Record

Logged = tuple[bytes | None, bytes | None, int]
"""Key, value, timestamp in ms."""


@dataclass
class MemoryStore:
    """A store view over a dict that remembers what its changelog would hold."""

    entries: dict[bytes, Entry] = field(default_factory=dict)
    changelog: list[Logged] = field(default_factory=list)

    def get(self, key: bytes) -> Entry | None:
        return self.entries.get(key)

    def put(self, key: bytes, value: bytes | None, timestamp_ms: int) -> None:
        self.changelog.append((key, value, timestamp_ms))
        if value is None:
            self.entries.pop(key, None)
        else:
            self.entries[key] = Entry(value, timestamp_ms)

    def range(self, first: bytes, last: bytes) -> Iterator[tuple[bytes, Entry]]:
        return iter(sorted((k, e) for k, e in self.entries.items() if first <= k <= last))


class PipelineDriver:
    """Pipes records through all tasks of partition 0 until nothing is left to do, as ``TopologyTestDriver`` does."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.stores = {s.name: MemoryStore() for sub in pipeline.sub_topologies() for s in sub.stores}
        self.outputs: list[Emitted] = []
        self._subs = pipeline.sub_topologies()
        self.tasks = {sub.id: sub.processor(self.stores, 0) for sub in self._subs}
        self._readers = {topic: sub.id for sub in self._subs for topic in sub.sources}
        self._offset = 0

    def pipe(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int = 0, headers: Headers = ()
    ) -> list[Emitted]:
        """Process one record, and what it causes in other tasks; returns what the outputs have got from it."""
        before = len(self.outputs)
        waiting = [Emitted(topic, key, value, timestamp, headers)]
        while waiting:
            each = waiting.pop(0)
            if each.topic in self._readers:
                waiting += self._process(each)
            else:
                self.outputs.append(each)
        return self.outputs[before:]

    def restart(self) -> None:
        """Make all tasks anew from their stores and checkpoints."""
        for sub in self._subs:
            checkpoint = self.tasks[sub.id].checkpoint()
            self.tasks[sub.id] = sub.processor(self.stores, 0)
            self.tasks[sub.id].restore(checkpoint)

    def changelog(self, store: str) -> list[Logged]:
        """Return the records of a store's changelog."""
        return self.stores[store].changelog

    def _process(self, each: Emitted) -> list[Emitted]:
        self._offset += 1
        record = Record(each.topic, 0, self._offset, each.timestamp_ms, each.key, each.value, each.headers)
        return self.tasks[self._readers[each.topic]].process(record)
