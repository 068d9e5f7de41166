"""Copies the entries of a new processor from the changelogs of the processor that it is split from (KIP-287).

T2 is the offset up to which the entries have been copied. It is committed in the transactions of the copies. While
the new processor warms up, the existing processor goes on writing. T1 is the end of its changelog once it has been
fenced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as KafkaPartition

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.pipeline.task import StoreDefinition
from kafka_rescale.core.processing.state_copies import POSITION_GONE, CopyMark, NewTask, Restored
from kafka_rescale.core.processing.task_state import SavedState, objection
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.processing.batches import batch_of
from kafka_rescale.kafka.processing.changelogs import changelog_as_seen
from kafka_rescale.kafka.processing.task_producer import TaskProducer
from kafka_rescale.kafka.reading.committed import copy_consumer, read_committed
from kafka_rescale.kafka.reading.log_range import log_range
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.kafka.writing.settings import COMMIT_SECONDS

BATCH = 2_000


class StateCopy:
    """The copy for one new processor. It has fenced every older copy for this processor.

    :param clock: wall clock in ms.
    """

    def __init__(self, connection: KafkaConnection, task: NewTask, clock: Callable[[], int] = now_ms) -> None:
        self._connection, self._task, self._clock = connection, task, clock
        changelogs = [task.changelog(store) for store in task.stores]
        self.producer = TaskProducer(connection, task.transactional_id(task.task), changelogs)
        self._consumer = copy_consumer(connection, task.group)

    def close(self) -> None:
        """Abort the uncommitted records, and close the consumer."""
        self.producer.abort()
        self._consumer.close()

    def positions(self) -> dict[str, Restored]:
        """Return T2 and the present end of every store.

        :raises Outage: the brokers don't answer.
        """
        return positions(self._consumer, self._task, self._clock())

    def to_the_end(self, *, is_final: bool, seconds: float, every: int = 20_000) -> int:
        """Copy up to the present ends. Return how many records were written.

        :param is_final: whether the existing processor has stopped, so that only entries up to T1 are left to
            read.
        :param seconds: after this time, this leaves the rest to the next call. There is no limit if ``is_final``,
            or for a changelog that has to be read again from its beginning.
        :param every: a transaction is committed after this number of records was read.
        :raises Fenced: a newer copy has begun.
        :raises Outage: the brokers don't answer.
        :raises UnsafeState: deletions may have been compacted away before they were read.
        """
        deadline, copied = time.monotonic() + seconds, 0
        for store in self._task.stores:
            asked_ms = self._clock()
            found = self.positions()[store.name]
            if found.mark.is_final and not is_final:
                continue
            if found.objection:
                copied += self._anew(store, found, every, is_final, asked_ms)
            else:
                copied += self._further(store, found, every, deadline, is_final, asked_ms)
        return copied

    def _further(
        self,
        store: StoreDefinition,
        found: Restored,
        every: int,
        deadline: float,
        is_final: bool,
        asked_ms: int,
    ) -> int:
        mark = found.mark.going_on(self._topic_id(found), asked_ms, is_final=is_final)
        if not found.mark.as_of_ms:
            # Commit a position before any record is written: a task that finds records without a position reads
            # everything again.
            self._commit(found.source, found.to, mark)
        at, pending, copied = found.to, 0, 0
        for batch in self._batches(found):
            copied += self._write(store, batch)
            at, pending = (batch[-1].offset() or 0) + 1, pending + len(batch)
            is_late = not is_final and time.monotonic() > deadline
            if pending >= every or is_late or self.producer.open_seconds >= COMMIT_SECONDS:
                self._commit(found.source, at, mark.model_copy(update={"copied": found.mark.copied + copied}))
                pending = 0
            if is_late:
                return copied
        if self.positions()[store.name].objection:
            return copied + self._anew(store, found, every, is_final, asked_ms)
        mark = mark.at_the_end(asked_ms).model_copy(update={"copied": found.mark.copied + copied})
        self._commit(found.source, found.end, mark)
        return copied

    def _anew(self, store: StoreDefinition, found: Restored, every: int, is_final: bool, asked_ms: int) -> int:
        """Read the changelog again from its beginning, and delete copied entries that it does not have any more.

        Until that is done, T2 can't be used: a partial reading can't tell which deletions are still to come.
        """
        copied, pending = 0, 0
        seen: set[bytes] = set()
        beginning = replace(found, to=0)
        for batch in self._batches(beginning):
            copied += self._write(store, batch, seen)
            pending += len(batch)
            if pending >= every or self.producer.open_seconds >= COMMIT_SECONDS:
                self._commit(found.source, 0, CopyMark())
                pending = 0
        self._commit(found.source, 0, CopyMark())
        gone = self._copied_before(store, seen)
        while deleted := list(islice(gone, BATCH)):
            with self.producer.transaction():
                for key, timestamp in deleted:
                    self._produce(store, key, None, timestamp, None)
            if self.producer.open_seconds >= COMMIT_SECONDS:
                self._commit(found.source, 0, CopyMark())
        self._require_fast(found, asked_ms)
        mark = CopyMark(topic_id=self._topic_id(found), as_of_ms=asked_ms, copied=copied, is_final=is_final)
        self._commit(found.source, found.end, mark)
        return copied

    def _require_fast(self, found: Restored, asked_ms: int) -> None:
        """Refuse a reading so slow that deletions may have been removed before they were read."""
        allowed = changelog_as_seen(self._consumer, found.source, self._task.topics[found.source[0]]).tombstone_ms
        age = self._clock() - asked_ms
        if allowed is not None and age >= allowed:
            raise UnsafeState(
                f"changelog {found.source[0]} partition {found.source[1]}",
                found=f"{age:,} ms to read it",
                expected=f"less than its delete.retention.ms, {allowed:,}",
                remedy="Raise delete.retention.ms of the changelog; T2 was not committed, and the next pass reads "
                "it again.",
            )

    def _copied_before(self, store: StoreDefinition, seen: set[bytes]) -> Iterator[tuple[bytes, int]]:
        topic, own = self._task.changelog(store), self._task.task.partition
        log = log_range(self._consumer, (topic, own))
        live: dict[bytes, int] = {}
        for message in read_ranges(self._connection, topic, {own: (log.begin, log.end)}, may_be_deleted=True):
            key: Any = message.key()
            live[key] = message.timestamp()[1]
        yield from ((key, at) for key, at in live.items() if key not in seen)

    def _batches(self, found: Restored) -> Iterator[list[Message]]:
        topic, partition = found.source
        ranges = {partition: (found.to, found.end)}
        messages = read_ranges(self._connection, topic, ranges, may_be_deleted=True)
        return iter(lambda: batch_of(messages, BATCH, COMMIT_SECONDS), [])

    def _write(self, store: StoreDefinition, batch: Sequence[Message], seen: set[bytes] | None = None) -> int:
        keys: list[Any] = [message.key() for message in batch]
        chosen = [m for m, is_mine in zip(batch, self._task.wanted(store, keys), strict=True) if is_mine]
        with self.producer.transaction():
            for message in chosen:
                headers: Any = message.headers()
                key: Any = message.key()
                self._produce(store, key, message.value(), message.timestamp()[1], headers)
                if seen is not None:
                    seen.add(key)
        return len(chosen)

    def _produce(self, store: StoreDefinition, key: bytes, value: Any, timestamp: int, headers: Any) -> None:
        own = self._task.task.partition
        topic = self._task.changelog(store)
        self.producer.produce(topic, value, key, own, timestamp=timestamp, headers=headers)

    def _commit(self, source: TopicPartition, at: int, mark: CopyMark) -> None:
        offset = KafkaPartition(*source, at, metadata=mark.model_dump_json())
        self.producer.commit([offset], self._consumer)

    def _topic_id(self, found: Restored) -> str:
        return self._task.topics[found.source[0]].topic_id


def positions(consumer: Consumer, task: NewTask, now: int) -> dict[str, Restored]:
    """Return T2 and the present end by store.

    :param consumer: a consumer of the new processor's group.
    :param now: wall clock in ms.
    :raises Outage: the brokers don't answer.
    """
    sources = {store.name: (task.changelog(store), task.parent.partition) for store in task.stores}
    known = read_committed(consumer, sources.values())
    return {name: _position(consumer, task, source, known.get(source), now) for name, source in sources.items()}


def _position(
    consumer: Consumer, task: NewTask, source: TopicPartition, known: tuple[int, str | None] | None, now: int
) -> Restored:
    log = changelog_as_seen(consumer, source, task.topics[source[0]])
    if known is None:
        own = log_range(consumer, (source[0], task.task.partition))
        return Restored(source, log.begin, log.end, CopyMark(), POSITION_GONE if own.end > 0 else "")
    offset, mark = known[0], CopyMark.of(known[1]).of_changelog(log.topic_id)
    saved = SavedState(
        topic=source[0], topic_id=mark.topic_id, partition=source[1], position=offset, as_of_ms=mark.as_of_ms
    )
    return Restored(source, max(offset, log.begin), log.end, mark, objection(saved, log, now))
