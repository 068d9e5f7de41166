"""The writing half of a unit: where its records go, and how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from confluent_kafka import Consumer, Message

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.formats.record_limits import LATEST_MS, UNLIMITED
from kafka_rescale.core.plan.plan import MoveKind
from kafka_rescale.kafka.copy.marks import Mark, Position
from kafka_rescale.kafka.copy.router import NOWHERE, Router, by_hand, kept_headers, to_bury
from kafka_rescale.kafka.copy.units import CopyUnit
from kafka_rescale.kafka.writing.producer import UnitProducer

CommitAt = Callable[[Consumer, Mapping[TopicPartition, Position]], None]


class UnitWriter:
    """Writes one unit into the transactions of its bucket.

    :param producer: the producer of the bucket.
    :param commit_at: commits positions of units of the bucket.
    """

    def __init__(self, unit: CopyUnit, producer: UnitProducer, commit_at: CommitAt) -> None:
        self.unit = unit
        self.position = 0
        self.mark = Mark()
        self.restart = Position(0, Mark())
        self.has_begun = self._is_committed = False
        self.pending_records = 0
        self.pending_bytes = 0
        self._router = Router(unit.move, unit.earlier)
        self._producer, self._commit_at = producer, commit_at

    @property
    def is_dirty(self) -> bool:
        """Whether there is a position to commit."""
        return not self._is_committed or self.position != self.restart.offset

    @property
    def unrecorded_ms(self) -> int:
        """How many ms the mark is fresher than the committed mark."""
        return self.mark.as_of_ms - self.restart.mark.as_of_ms

    def begin(self, position: Position, *, committed: bool) -> None:
        """Set the position at which the copy goes on.

        :param committed: whether the group already has exactly this position.
        """
        self.restart, self._is_committed, self.has_begun = position, committed, True
        self.rewind()

    def rewind(self) -> None:
        """Go back to the last commit, after an abort."""
        self.position, self.mark = self.restart.offset, self.restart.mark
        self.pending_records = self.pending_bytes = 0

    def write(self, messages: Sequence[Message]) -> None:
        """Write records in the order of their offsets; they are not visible before ``commit``.

        In place, write only records that move, and a tombstone in the old partition. Both are in one transaction,
        so that a key is always live in exactly one partition.

        :raises Fenced: a newer attempt has taken over.
        :raises Rewound: the transaction was aborted.
        :raises UnsafeState: a record can't be copied as it is.
        """
        keys: list[Any] = [message.key() for message in messages]
        values: list[Any] = [message.value() for message in messages]
        targets = self._router.targets(keys, self.unit.partition)
        wanted = self._router.values(values, self.unit.partition)
        end = int(messages[-1].offset() or 0) + 1
        if NOWHERE in targets:
            at = [i for i, target in enumerate(targets) if target != NOWHERE]
            messages, keys, wanted = ([each[i] for i in at] for each in (messages, keys, wanted))
            targets = [targets[i] for i in at]
        if messages:
            self._write_all(messages, keys, wanted, targets)
        self.position = end
        self.pending_records += len(messages)

    def _write_all(
        self, messages: Sequence[Message], keys: Sequence[Any], values: Sequence[Any], targets: Sequence[int]
    ) -> None:
        with self._producer.transaction():
            self.pending_bytes += self._produce_all(messages, keys, values, targets)
            if self.unit.move.is_in_place and self.unit.is_changelog:
                self._bury([messages[i] for i in to_bury(keys, values)])

    def reached(self, offset: int) -> None:
        """Note that only markers and aborted records lie between the position and this offset."""
        self.position = max(self.position, offset)

    @property
    def written(self) -> Position:
        """The position up to which it has written, with the mark of an ordinary copy."""
        records, size = self.mark.records + self.pending_records, self.mark.bytes + self.pending_bytes
        return Position(self.position, replace(self.mark, records=records, bytes=size, state=""))

    def commit(self, consumer: Consumer) -> None:
        """Make the records visible and the position durable, both or neither.

        :raises Fenced: a newer attempt has taken over; nothing was written.
        :raises Rewound: the transaction was aborted.
        """
        self.commit_at(consumer, self.written)

    def commit_at(self, consumer: Consumer, position: Position) -> None:
        """Commit a position and mark, together with the records of this transaction; see ``Bucket``."""
        self._commit_at(consumer, {self.unit.source: position})

    def _produce_all(
        self, messages: Sequence[Message], keys: Sequence[Any], values: Sequence[Any], targets: Sequence[int]
    ) -> int:
        """Hand all records to the client and return their size. In this loop every instruction costs time."""
        topic, clean, produce = self.unit.move.target, self.unit.is_changelog, self._producer.produce
        size, latest = 0, latest_timestamp(self.unit)
        for message, key, value, target in zip(messages, keys, values, targets, strict=True):
            headers: Any = message.headers()
            timestamp = message.timestamp()[1]
            if headers and clean:
                headers = kept_headers(headers)
            if not 0 < timestamp <= latest:
                raise wrong_timestamp(self.unit, message)
            size += len(message) + (len(key) if key else 0)
            produce(topic, value, key, target, timestamp=timestamp, headers=headers)
        return size

    def _bury(self, messages: Sequence[Message]) -> None:
        """Write tombstones with the times of the keys' last records, so that retention treats both alike."""
        topic, partition = self.unit.source
        for message in messages:
            self._producer.produce(topic, None, message.key(), partition, timestamp=message.timestamp()[1])


def latest_timestamp(unit: CopyUnit) -> int:
    """Return the latest timestamp that a record may have, in ms. Spark reads state, but not records in flight."""
    return LATEST_MS if unit.is_changelog else UNLIMITED


def place_of(unit: CopyUnit, message: Message) -> str:
    """Return the place of a record, for errors."""
    return f"topic {unit.move.source} partition {unit.partition} offset {message.offset()}"


def wrong_timestamp(unit: CopyUnit, message: Message) -> UnsafeState:
    """Return the error about a record whose timestamp can't be written, or can't be proven."""
    timestamp = message.timestamp()[1]
    if timestamp > 0:
        found = f"timestamp {timestamp}, which is no time in ms: Spark could not read the topic to compare it"
    elif timestamp == 0:
        found = "timestamp 0 (1970-01-01), which the client library would replace by the present time"
    else:
        found = f"no timestamp ({timestamp}), for which the client library would write the present time"
    return UnsafeState(
        place_of(unit, message),
        found=found,
        expected=f"a timestamp of at least 1 ms and at most {latest_timestamp(unit)} ms",
        remedy=f"Its producer must write real timestamps from now on. {by_hand(unit.move)}"
        if unit.move.kind is MoveKind.INPUT
        else "Delete or update this entry in the application, so that it gets a real timestamp. When compaction "
        "has removed this record, trigger again.",
    )
