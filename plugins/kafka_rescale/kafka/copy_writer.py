"""The writing half of a unit: records and progress in one transaction, under the unit's own transactional id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as KafkaPartition

from kafka_rescale.core.errors import Fenced, RescaleError, UnsafeState
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.copy_marks import Mark, Position
from kafka_rescale.kafka.copy_producer import Rewound, producer_settings
from kafka_rescale.kafka.copy_records import NOWHERE, Router, kept_headers, to_bury
from kafka_rescale.kafka.copy_settings import BATCH_BYTES
from kafka_rescale.kafka.copy_units import CopyUnit
from kafka_rescale.kafka.failures import FENCED, ConnectionTrouble, typed

CALL_SECONDS = 60.0
ABORT_SECONDS = 10.0
QUEUE_FULL_SECONDS = 0.1


class UnitWriter:
    """Writes one unit; construction fences every older attempt at the same unit.

    :param batch_bytes: largest batch that the target accepts.
    :raises Outage: the transaction coordinator does not answer.
    """

    def __init__(
        self, connection: KafkaConnection, unit: CopyUnit, green: str, batch_bytes: int = BATCH_BYTES
    ) -> None:
        self.unit = unit
        self.position = 0
        self.mark = Mark()
        self._restart = Position(0, Mark())
        self._is_committed = False
        self.pending_records = 0
        self.pending_bytes = 0
        self._open = False
        self._refused: KafkaError | None = None
        self._fatal: KafkaError | None = None
        self._router = Router(unit.move)
        self._trouble = ConnectionTrouble(connection.servers)
        try:
            self._producer = Producer(
                connection.client(
                    **producer_settings(unit.transactional_id(green), batch_bytes),
                    error_cb=self._event,
                    on_delivery=self._delivered,
                )
            )
            # An open transaction of an older attempt is aborted here, hence before its position is read.
            self._producer.init_transactions(CALL_SECONDS)
        except KafkaException as error:
            self._trouble.raise_if_refused()
            raise typed(error.args[0], f"copy of {unit}") from None

    @property
    def is_dirty(self) -> bool:
        """Whether there is a position to commit."""
        return not self._is_committed or self.position != self._restart.offset

    @property
    def unrecorded_ms(self) -> int:
        """By how many ms the mark is fresher than the committed one."""
        return self.mark.as_of_ms - self._restart.mark.as_of_ms

    def begin(self, position: Position, *, committed: bool) -> None:
        """Set where the copy goes on.

        :param committed: whether the group already has exactly this position.
        """
        self._restart, self._is_committed = position, committed
        self.rewind()

    def rewind(self) -> None:
        """Go back to the last commit, after an abort."""
        self.position, self.mark = self._restart.offset, self._restart.mark
        self.pending_records = self.pending_bytes = 0

    def write(self, messages: Sequence[Message]) -> None:
        """Write records in the order of their offsets; nothing of them is visible before ``commit``.

        In place, only what moves, and a tombstone where it was: in one transaction, so that a key is never live in
        two partitions, nor in none.

        :raises Fenced: a newer attempt has taken over.
        :raises Rewound: the transaction was aborted.
        :raises UnsafeState: a record that can't be copied as it is.
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
        try:
            self._begin_transaction()
            self.pending_bytes += self._produce_all(messages, keys, values, targets)
            if self.unit.move.is_in_place and self.unit.is_changelog:
                self._bury([messages[i] for i in to_bury(keys, values)])
            self._producer.poll(0)
        except KafkaException as error:
            raise self._failure(error.args[0]) from None

    def reached(self, offset: int) -> None:
        """Note that there are only markers and aborted records between the position and this offset."""
        self.position = max(self.position, offset)

    def commit(self, consumer: Consumer) -> None:
        """Make the records visible and the position durable, both or none.

        :raises Fenced: a newer attempt has taken over; nothing was written.
        :raises Rewound: the transaction was aborted.
        """
        mark = replace(
            self.mark,
            records=self.mark.records + self.pending_records,
            bytes=self.mark.bytes + self.pending_bytes,
            state="",
        )
        self.commit_at(consumer, Position(self.position, mark))

    def commit_at(self, consumer: Consumer, position: Position) -> None:
        """Commit a position and mark, together with what has been written in this transaction."""
        topic, partition = self.unit.source
        offset = KafkaPartition(topic, partition, position.offset, metadata=position.mark.to_metadata())
        try:
            self._begin_transaction()
            self._producer.send_offsets_to_transaction([offset], consumer.consumer_group_metadata(), CALL_SECONDS)
            self._producer.commit_transaction(CALL_SECONDS)
        except KafkaException as error:
            raise self._failure(error.args[0]) from None
        self._open = False
        self.begin(position, committed=True)

    def abort(self) -> None:
        """Give up what has been written since the last commit; errors don't matter any more."""
        if self._open:
            self._open = False
            try:
                self._producer.abort_transaction(ABORT_SECONDS)
            except KafkaException:
                return

    def _begin_transaction(self) -> None:
        if not self._open:
            self._producer.begin_transaction()
            self._open = True

    def _produce_all(
        self, messages: Sequence[Message], keys: Sequence[Any], values: Sequence[Any], targets: Sequence[int]
    ) -> int:
        """Hand all records to the client and return their size; the one loop whose every instruction counts."""
        topic, clean, produce = self.unit.move.target, self.unit.is_changelog, self._producer.produce
        size = 0
        for message, key, value, target in zip(messages, keys, values, targets, strict=True):
            headers: Any = message.headers()
            timestamp = message.timestamp()[1]
            if headers and clean:
                headers = kept_headers(headers)
            if not timestamp:
                raise unwritable_timestamp(self.unit, message)
            size += len(message) + (len(key) if key else 0)
            while True:
                try:
                    produce(topic, value, key, target, timestamp=timestamp, headers=headers)
                    break
                except BufferError:
                    self._producer.poll(QUEUE_FULL_SECONDS)
        return size

    def _bury(self, messages: Sequence[Message]) -> None:
        """Delete keys where they were, as of the time of their last record: retention treats both alike."""
        topic, partition = self.unit.source
        for message in messages:
            while True:
                try:
                    self._producer.produce(topic, None, message.key(), partition, timestamp=message.timestamp()[1])
                    break
                except BufferError:
                    self._producer.poll(QUEUE_FULL_SECONDS)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None and error.code() not in {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}:
            self._refused = self._refused or error

    def _event(self, error: KafkaError) -> None:
        self._trouble(error)
        if error.fatal():
            self._fatal = error

    def _failure(self, error: KafkaError) -> RescaleError | Rewound:
        """Return what to raise; an abortable transaction has been aborted then."""
        if error.code() == KafkaError._FATAL:
            # produce() only says that there was a fatal error; which one is said to the callback.
            self._producer.poll(0)
            error = self._fatal or error
        self._trouble.raise_if_refused()
        what = f"copy of {self.unit}"
        if error.code() in FENCED or (error.fatal() and "fenced" in error.str()):
            return self._fenced(error)
        # produce() says _STATE once a delivery has failed: the transaction can only be aborted.
        abortable = error.txn_requires_abort() or error.code() == KafkaError._STATE
        reason = typed(self._refused or error, what)
        self._refused = None
        if not abortable or error.fatal():
            return reason
        try:
            self._producer.abort_transaction(CALL_SECONDS)
        except KafkaException as failed:
            failure: KafkaError = failed.args[0]
            return self._fenced(failure) if failure.fatal() else typed(failure, what)
        self._open = False
        return reason if isinstance(reason, Fenced) else Rewound(reason)

    def _fenced(self, error: KafkaError) -> Fenced:
        self._open = False
        return Fenced(
            f"copy of {self.unit}",
            found=f"{error.name()} ({error.str()})",
            expected="to be the newest attempt",
            remedy="Nothing to do here: the newer attempt goes on, and nothing was written since it began.",
        )


def unwritable_timestamp(unit: CopyUnit, message: Message) -> UnsafeState:
    """Return the error about a record that can't be written with the timestamp that it has."""
    return UnsafeState(
        f"topic {unit.move.source} partition {unit.partition} offset {message.offset()}",
        found="timestamp 0 (1970-01-01), which the client library would replace by the present time",
        expected="a timestamp of at least 1 ms",
        remedy="Delete or update this entry in the application, so that it gets a real timestamp.",
    )
