"""The transactional producer of a unit: its settings, its transactions, and what their errors mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, ThrottleEvent, TopicPartition

from kafka_rescale.core.errors import Fenced, Outage, RescaleError, TimedOut
from kafka_rescale.kafka.client.bounded_call import StuckCall, bounded
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.error_class import ErrorClass
from kafka_rescale.kafka.client.error_classes import OUTAGES, class_of
from kafka_rescale.kafka.client.failures import ConnectionTrouble, Rewound, fatal_error, named_reason, to_error
from kafka_rescale.kafka.client.waiting import poll_until
from kafka_rescale.kafka.writing.begin import begin_transactions
from kafka_rescale.kafka.writing.settings import TRANSACTION_SECONDS, producer_settings

T = TypeVar("T")

CALL_SECONDS = 60.0
FIRST_SECONDS, LONGEST_SECONDS = 10.0, 20.0
"""How long a producer looks for its coordinator before a new one does.

Many begin at the same time, so this is longer than for the control topic."""
STUCK_SECONDS = 30.0
"""How long to wait for a commit: the library itself might wait for ever."""
ABORT_SECONDS = 10.0
FLUSH_SECONDS = 0.5
QUEUE_FULL_SECONDS = 0.1
REPORT_SECONDS = 1.0
PARTITION_SECONDS = 30.0
"""How long brokers may take to show a partition that has been added; within ``TRANSACTION_SECONDS``."""


class UnitProducer:
    """A producer that has fenced every older producer of its transactional id.

    :param what: what the producer is used for, for errors.
    :param batch_bytes: largest batch that the target accepts.
    :param call_seconds: how long to wait for each call of a commit, and for room in the queue. After that, the
        producer can't be used any more.
    :param settings: settings that replace the settings of a copy.
    :ivar throttled_ms: for how long brokers have made this client wait because of a quota.
    :raises Outage: the transaction coordinator does not answer.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        what: str,
        transactional_id: str,
        batch_bytes: int,
        call_seconds: float = STUCK_SECONDS,
        **settings: Any,
    ) -> None:
        self._what, self._call_seconds = what, call_seconds
        self._open = self._is_abandoned = False
        self._wrote_at: float | None = None
        self._refused: KafkaError | None = None
        self._trouble = ConnectionTrouble(connection.servers)
        self.throttled_ms = 0
        # This aborts an open transaction of an older attempt before its position is read.
        self._producer = begin_transactions(
            connection.client(
                **{**producer_settings(transactional_id, batch_bytes), **settings},
                error_cb=self._trouble,
                throttle_cb=self._throttled,
                on_delivery=self._delivered,
            ),
            what,
            self._trouble,
            first_seconds=FIRST_SECONDS,
            longest_seconds=LONGEST_SECONDS,
            seconds=CALL_SECONDS,
        )

    @property
    def open_seconds(self) -> float:
        """How long the transaction has been open. For the brokers, it is open since its first record."""
        return 0.0 if self._wrote_at is None or not self._open else time.monotonic() - self._wrote_at

    @property
    def unanswered(self) -> int:
        """How many records brokers have not acknowledged yet. The number may include a few requests."""
        return len(self._producer)

    def await_answers(self, seconds: float) -> None:
        """Wait for a moment for answers of the brokers.

        :param seconds: at most.
        """
        self._producer.poll(seconds)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Go on with the open transaction, or begin a new one. The transaction stays open after the block.

        :raises Fenced: a newer attempt has taken over.
        :raises Rewound: the transaction was aborted.
        :raises StuckCall: an earlier call has not returned.
        """
        if self._is_abandoned:
            raise StuckCall(self._what, "a call of this producer", self._call_seconds)
        try:
            if not self._open:
                self._producer.begin_transaction()
                # Reports that come while a transaction is aborted say nothing about the next one.
                self._open, self._wrote_at, self._refused = True, None, None
            yield
            self._producer.poll(0)
        except KafkaException as error:
            raise self._failure(error.args[0]) from None
        except SystemError:
            raise self._lost() from None

    def produce(
        self, topic: str, value: Any, key: Any, partition: int, *, timestamp: int, headers: Any = None
    ) -> None:
        """Hand a record to the client.

        This waits while the client's queue is full, or while brokers don't show the partition yet.

        :raises StuckCall: the queue stayed full.
        :raises TimedOut: brokers did not show the partition in time.
        """
        self._wrote_at = self._wrote_at or time.monotonic()
        left = self._call_seconds
        while True:
            try:
                self._producer.produce(topic, value, key, partition, timestamp=timestamp, headers=headers)
                return
            except BufferError:
                if left <= 0:
                    self.abandon()
                    raise StuckCall(self._what, "a full queue of records", self._call_seconds) from None
                self._producer.poll(QUEUE_FULL_SECONDS)
                left -= QUEUE_FULL_SECONDS
            except KafkaException as error:
                if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                    raise
                self._await_partition(topic, partition)

    def commit(self, offsets: Sequence[TopicPartition], consumer: Consumer) -> None:
        """Make the records visible and offsets of the consumer's group durable, all or nothing.

        :raises Fenced: a newer attempt has taken over; nothing was written.
        :raises Rewound: the transaction was aborted.
        :raises StuckCall: a call did not return. Whether the commit takes effect shows only when another producer
            has taken the transactional id.
        """
        with self.transaction():
            self._bounded(self._flush, "flush")
            # The consumer's own thread answers this; the call has no timeout.
            metadata = self._bounded(consumer.consumer_group_metadata, "consumer_group_metadata")
            self._bounded(
                lambda: self._producer.send_offsets_to_transaction(list(offsets), metadata, CALL_SECONDS),
                "send_offsets_to_transaction",
            )
            self._bounded(lambda: self._producer.commit_transaction(CALL_SECONDS), "commit_transaction")
            self._open = False
            # The brokers have let it in: a refusal from before is not the reason of a later outage.
            self._trouble.forget()

    def abort(self) -> None:
        """Abort the records since the last commit. Errors of the abort don't matter any more."""
        if self._open:
            self._open = False
            try:
                self._producer.abort_transaction(ABORT_SECONDS)
            except KafkaException:
                return

    def abandon(self) -> None:
        """Leave the producer as it is. The next producer with its transactional id aborts its open transaction."""
        self._open, self._is_abandoned = False, True

    def _bounded(self, action: Callable[[], T], call: str) -> T:
        try:
            return bounded(action, self._call_seconds, self._what, call)
        except StuckCall:
            self.abandon()
            raise

    def _flush(self) -> None:
        """Wait until every record has arrived, or the brokers have refused a record.

        Records behind a refused record are not sent any more, and as long as there are such records, neither a
        commit nor a flush returns (librdkafka 2.16, seen).
        """
        deadline = time.monotonic() + CALL_SECONDS
        while self._producer.flush(FLUSH_SECONDS) and self._refused is None:
            if time.monotonic() > deadline:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def _await_partition(self, topic: str, partition: int) -> None:
        """Ask for the topic until the partition shows. By itself, the client would only ask minutes later."""
        poll_until(
            lambda: partition in self._producer.list_topics(topic, CALL_SECONDS).topics[topic].partitions,
            seconds=PARTITION_SECONDS,
            otherwise=lambda: TimedOut(
                f"every broker to show partition {partition} of topic {topic!r}, which has grown",
                seconds=PARTITION_SECONDS,
                remedy="Find out why the metadata of some brokers lag behind, then run again.",
            ),
        )

    def _throttled(self, event: ThrottleEvent) -> None:
        self.throttled_ms += round(event.throttle_time * 1000)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None and error.code() not in {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}:
            self._refused = self._refused or error

    def _failure(self, error: KafkaError) -> RescaleError | Rewound:
        """Return the error to raise, after aborting the transaction if that is possible."""
        if error.code() == KafkaError._FATAL:
            # produce() only says that there was a fatal error.
            error = fatal_error(self._producer, ABORT_SECONDS) or error
        if class_of(error) is ErrorClass.FENCED or (error.fatal() and "fenced" in error.str()):
            return self._overtaken(error)
        # produce() says _STATE once a delivery has failed: the transaction can only be aborted.
        abortable = error.txn_requires_abort() or error.code() == KafkaError._STATE
        if error.code() == KafkaError._STATE:
            self._hear_of_refusal()
        refused, self._refused = self._refused or error, None
        if class_of(refused) is ErrorClass.FENCED:
            reason = self._overtaken(refused)
        else:
            reason = self._trouble.reason_of(to_error(refused, self._what))
        if not abortable or error.fatal():
            return reason
        try:
            self._bounded(lambda: self._producer.abort_transaction(CALL_SECONDS), "abort_transaction")
        except StuckCall as stuck:
            return stuck
        except KafkaException as failed:
            failure: KafkaError = failed.args[0]
            is_overtaken = failure.fatal() and class_of(failure) not in OUTAGES
            return self._overtaken(failure) if is_overtaken else to_error(failure, self._what)
        self._open = False
        return reason if isinstance(reason, Fenced) else Rewound(reason)

    def _hear_of_refusal(self) -> None:
        """Wait a moment for the delivery report, which has the reason.

        Without the report, the error would only be ``_STATE``.
        """
        deadline = time.monotonic() + REPORT_SECONDS
        with suppress(KafkaException, SystemError):
            while self._refused is None and time.monotonic() < deadline:
                self._producer.poll(QUEUE_FULL_SECONDS)

    def _lost(self) -> RescaleError:
        """Return the error to raise if confluent-kafka has lost a fatal error among delivery reports.

        Its call then returns "NULL without setting an exception".
        """
        if (error := fatal_error(self._producer, ABORT_SECONDS)) is not None:
            return self._failure(error)
        self._open = False
        return Rewound(
            Outage(
                self._what,
                found="an error that the client library has lost",
                expected="a transaction to go on",
                remedy="The transaction was aborted, and its records are written again.",
            )
        )

    def _overtaken(self, error: KafkaError) -> RescaleError:
        """Return the error to raise if brokers don't let this producer go on.

        Either a newer producer has fenced it, or its transaction was open for too long and was aborted.
        """
        seconds = self.open_seconds
        self._open = False
        if seconds >= TRANSACTION_SECONDS:
            return Outage(
                self._what,
                found=f"a transaction that was open for {seconds:.0f} s, and was aborted ({error.name()})",
                expected=f"less than transaction.timeout.ms, {TRANSACTION_SECONDS:.0f} s",
                remedy="Nothing of it counts; run again to go on from the last commit. If this happens again, "
                "find out what takes so long: a function of the pipeline, the machine, or brokers that don't "
                "answer.",
            )
        return Fenced(
            self._what,
            found=named_reason(error),
            expected="to be the newest attempt",
            remedy="Nothing to do here: the newer attempt goes on, and nothing was written since it began.",
        )
