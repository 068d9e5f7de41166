"""The records that a task reads: its source partitions up to captured ends, merged by timestamp as in Kafka
Streams.

If a topic has grown, a partition may have to wait: its keys were in another partition before, and the records
there come first.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPartition

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import ClusterOutage
from kafka_rescale.kafka.client.error_classes import may_pass
from kafka_rescale.kafka.client.failures import to_error
from kafka_rescale.kafka.processing.grown_ends import Holds
from kafka_rescale.kafka.reading.range_reader import STALL_SECONDS

POLL_RECORDS = 2_000
POLL_SECONDS = 0.02
FULL, LOW = 10_000, 1_000
"""If ``FULL`` records of a partition wait for other partitions, no more are fetched until fewer than ``LOW`` are
left."""


class TaskInput:
    """Reads some partitions from their positions to their ends (exclusive), once.

    :param consumer: a ``read_committed`` consumer with ``enable.partition.eof``. Its partitions are assigned here.
    :param holds: partitions that wait until others have been read up to an offset.
    :param names: the pipeline's own names of the topics, by full names. Records of equal time come in the order of
        these names, which is the same in every generation.
    """

    def __init__(
        self,
        consumer: Consumer,
        positions: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        holds: Holds | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._consumer, self._ends, self._holds = consumer, ends, dict(holds or {})
        self._positions = dict(positions)
        self._left = {source for source, at in positions.items() if at < ends[source]}
        known = names or {}
        ranked = sorted(self._left, key=lambda source: (known.get(source[0], source[0]), source[1]))
        self._buffers: dict[TopicPartition, deque[Message]] = {source: deque() for source in ranked}
        self._taken = dict.fromkeys(self._left, 0)
        self._read = dict.fromkeys(self._left, 0)
        self._paused: set[TopicPartition] = set()
        consumer.assign([KafkaPartition(*source, positions[source]) for source in sorted(self._left)])

    def records(self) -> Iterator[Message]:
        """Yield the records of all partitions.

        Each time, this looks at the next record of each partition and yields the record with the lowest timestamp.
        """
        iterators = {source: self._of(source) for source in self._buffers}
        rank = {source: number for number, source in enumerate(iterators)}
        ended: set[TopicPartition] = set()
        heads: list[tuple[int, int, TopicPartition, Message]] = []

        def advance(source: TopicPartition) -> None:
            message = next(iterators[source], None)
            if message is None:
                ended.add(source)
            else:
                heapq.heappush(heads, (message.timestamp()[1], rank[source], source, message))

        for source in iterators:
            if source not in self._holds:
                advance(source)
        while heads or self._holds:
            if heads:
                _, _, source, message = heapq.heappop(heads)
                self._positions[source] = (message.offset() or 0) + 1
                self._taken[source] += 1
                yield message
                advance(source)
            if self._holds:
                for released in self._released(ended):
                    advance(released)

    def _released(self, ended: set[TopicPartition]) -> list[TopicPartition]:
        """Take the partitions that don't have to wait any more out of those that wait, and return them."""
        found = [
            source
            for source, fences in self._holds.items()
            if all(self._positions[s] >= fence or s in ended for s, fence in fences.items())
        ]
        for source in found:
            del self._holds[source]
        return found

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset to read in each partition.

        If all records of a partition have been yielded, this is the end of the partition.
        """
        return {
            source: max(at, self._ends[source]) if self._is_through(source) else at
            for source, at in self._positions.items()
        }

    def _is_through(self, source: TopicPartition) -> bool:
        return source in self._read and source not in self._left and self._taken[source] == self._read[source]

    def _of(self, source: TopicPartition) -> Iterator[Message]:
        buffer = self._buffers[source]
        heard = time.monotonic()
        while True:
            while buffer:
                yield buffer.popleft()
                heard = time.monotonic()
            if source not in self._left:
                return
            if self._fetch():
                heard = time.monotonic()
            if time.monotonic() - heard > STALL_SECONDS:
                what = f"topic {source[0]!r} partition {source[1]}"
                raise ClusterOutage(what, found="nothing", expected="records", remedy="Run again.")

    def _fetch(self) -> int:
        """Take the records that brokers have sent, and return their number."""
        self._resume({source for source in self._paused if len(self._buffers[source]) < LOW})
        messages = self._consumer.consume(POLL_RECORDS, POLL_SECONDS)
        for message in messages:
            self._take(message)
        self._pause({source for source in self._left - self._paused if len(self._buffers[source]) >= FULL})
        return len(messages)

    def _take(self, message: Message) -> None:
        source = message.topic() or "", message.partition() or 0
        error, offset = message.error(), message.offset() or 0
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            if not may_pass(error):
                raise to_error(error, f"topic {source[0]!r} partition {source[1]}")
            return
        if source not in self._left:
            return
        if error is None and offset < self._ends[source]:
            self._buffers[source].append(message)
            self._read[source] += 1
        if offset + (0 if error else 1) >= self._ends[source]:
            self._left.discard(source)

    def _pause(self, sources: set[TopicPartition]) -> None:
        if sources:
            self._consumer.pause([KafkaPartition(*source) for source in sources])
            self._paused |= sources

    def _resume(self, sources: set[TopicPartition]) -> None:
        if sources:
            self._consumer.resume([KafkaPartition(*source) for source in sources])
            self._paused -= sources
