"""Runs pipelines in memory. Every topic has one partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_rescale.core.pipeline import Pipeline
from kafka_rescale.core.pipeline.stores.record_cache import RecordCache
from kafka_rescale.core.pipeline.task import Emitted, Entry, Headers, Record, TaskProcessor

LEVELS = 4
"""At most so many sub-topologies follow each other."""


class Written(NamedTuple):
    """A record of a topic that a pipeline writes."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()


class Piped(NamedTuple):
    """A record of an input. Its only header is ``h``."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    header: bytes = b""


@dataclass
class MemoryStore:
    """A store view over a dict that remembers what its changelog would hold."""

    changelog: list[Written]
    entries: dict[bytes, Entry] = field(default_factory=dict)

    def get(self, key: bytes) -> Entry | None:
        return self.entries.get(key)

    def put(self, key: bytes, value: bytes | None, timestamp_ms: int, headers: Headers = ()) -> None:
        self.changelog.append(Written(key, value, timestamp_ms, headers))
        if value is None:
            self.entries.pop(key, None)
        else:
            self.entries[key] = Entry(value, timestamp_ms)

    def range(self, first: bytes, last: bytes) -> Iterator[tuple[bytes, Entry]]:
        return iter(sorted((k, e) for k, e in self.entries.items() if first <= k <= last))


class PipelineDriver:
    """Pipes records through all tasks of partition 0 until nothing is left to do.

    ``written`` has all records by topic. Names of internal topics are without the application id.

    :param cache_bytes: size of the record cache of all tasks together. With 0, there is no cache.
    """

    def __init__(self, pipeline: Pipeline, cache_bytes: int = 0) -> None:
        self.written: dict[str, list[Written]] = {}
        self._subs = pipeline.sub_topologies()
        definitions = [store for sub in self._subs for store in sub.stores]
        self.stores = {
            s.name: MemoryStore(self.written.setdefault(f"{s.name}-changelog", [])) for s in definitions
        }
        names = {topic: f"app-{topic}" for topic in pipeline.topology.repartitions}
        self.cache = RecordCache(cache_bytes, names) if cache_bytes else None
        self.tasks: dict[int, TaskProcessor] = {
            sub.id: sub.processor(self.stores, 0, self.cache) for sub in self._subs
        }
        self._readers = {topic: sub.id for sub in self._subs for topic in sub.sources}
        self._offset = 0

    def pipe(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int = 0, headers: Headers = ()
    ) -> list[Emitted]:
        """Process one record, and what it causes in other tasks.

        Return the records that it caused in the outputs.
        """
        return self._follow(self._process(Emitted(topic, key, value, timestamp, headers)))

    def commit(self) -> list[Emitted]:
        """Write what the cache holds back, and process what that causes in other tasks."""
        return self._follow([each for task in self.tasks.values() for each in task.flush()])

    def _follow(self, waiting: list[Emitted]) -> list[Emitted]:
        outputs = []
        while waiting:
            each = waiting.pop(0)
            written = Written(each.key, each.value, each.timestamp_ms, each.headers)
            self.written.setdefault(each.topic, []).append(written)
            if each.topic in self._readers:
                waiting += self._process(each)
            else:
                outputs.append(each)
        return outputs

    def pipe_all(self, records: Iterable[Piped], commit: int = 0) -> dict[str, list[Written]]:
        """Process many records, and return all written records by topic.

        :param commit: commit after so many records, and at the end until the cache holds nothing back. 0 is never.
        """
        for number, each in enumerate(records, 1):
            self.pipe(each.topic, each.key, each.value, each.timestamp, (("h", each.header),))
            if commit and number % commit == 0:
                self.commit()
        for _ in range(LEVELS if commit else 0):
            self.commit()
        return {topic: written for topic, written in self.written.items() if written}

    def restart(self) -> None:
        """Replace all tasks by new ones, made from their stores and checkpoints."""
        for sub in self._subs:
            checkpoint = self.tasks[sub.id].checkpoint()
            self.tasks[sub.id] = sub.processor(self.stores, 0)
            self.tasks[sub.id].restore(checkpoint)

    def task_of(self, topic: str) -> TaskProcessor:
        """Return the task that reads a topic."""
        return self.tasks[self._readers[topic]]

    def changelog(self, store: str) -> list[Written]:
        """Return the records of a store's changelog."""
        return self.stores[store].changelog

    def _process(self, each: Emitted) -> list[Emitted]:
        self._offset += 1
        record = Record(each.topic, 0, self._offset, each.timestamp_ms, each.key, each.value, each.headers)
        return self.task_of(each.topic).process(record)
