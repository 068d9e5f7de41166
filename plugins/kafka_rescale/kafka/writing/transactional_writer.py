"""Small transactions on one partition by one transactional id; only the newest holder of the id can write."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException

from kafka_rescale.core.control.keys import LARGEST_RECORD_BYTES
from kafka_rescale.core.errors import ClusterOutage, Fenced, Outage, RescaleError
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.failures import ConnectionTrouble, to_error
from kafka_rescale.kafka.writing.begin import begin_transactions, reason_of

CALL_SECONDS = 20.0
BEGIN_SECONDS = 45.0
"""How long to try to fence earlier holders. The end of their transaction has to be written first. While the leader
of one of its partitions is frozen, the coordinator answers ``CONCURRENT_TRANSACTIONS`` for over 20 s (seen)."""

FIRST_SECONDS = 3.0
"""How long a producer has to find its coordinator before a new one looks for it."""

LONGEST_SECONDS = 10.0
"""The same for later tries. A try that begins just before a frozen broker goes on may wait in vain (seen)."""

SILENCE_SECONDS = 4.0
"""How long a request waits for a frozen broker, before the coordinator is looked for anew."""

TRANSACTION_TIMEOUT_MS = 10_000
"""A writer that dies within a transaction delays every reader for that long.

Afterwards the coordinator ends the transaction and refuses its producer, as if a newer one had come."""


class TransactionalWriter:
    """A producer that has fenced every earlier holder of its transactional id.

    After an outage, a writer is of no use any more. If a call of librdkafka 2.16 was given up, it may hang for
    ever, even when the brokers are back. While it hangs, every other call is refused (seen with a frozen broker).
    A new writer ends the transaction that was left open. The owner of the writer decides whether a new writer may
    take the id.

    :param transactional_id: only the latest process that took this id may write.
    :raises ClusterOutage: the transaction coordinator doesn't answer.
    """

    def __init__(self, connection: KafkaConnection, transactional_id: str) -> None:
        self._what = f"transactional.id {transactional_id!r}"
        self._trouble = ConnectionTrouble(connection.servers)
        self._ended: RescaleError | None = None
        settings = {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "message.max.bytes": LARGEST_RECORD_BYTES,
            "compression.type": "gzip",
            "linger.ms": 0,
            "socket.timeout.ms": round(SILENCE_SECONDS * 1000),
        }
        self._producer = begin_transactions(
            connection.client(**settings, error_cb=self._trouble),
            self._what,
            self._trouble,
            first_seconds=FIRST_SECONDS,
            longest_seconds=LONGEST_SECONDS,
            seconds=BEGIN_SECONDS,
        )

    def write(self, topic: str, records: Mapping[str, bytes | None]) -> None:
        """Write all records to partition 0, or no record.

        :param records: value per key; ``None`` deletes the key.
        :raises Fenced: another process has taken the transactional id.
        :raises Outage: the outcome is unknown: read, then write with a new writer. (Brokers of Kafka 4.3 also
            cause this error, by UNKNOWN_SERVER_ERROR, when another producer takes the id during the commit.)
        """
        if self._ended is not None:
            raise self._ended
        self._trouble.forget_up_to_now(self._producer)
        refused: list[KafkaError] = []
        began = time.monotonic()
        try:
            self._producer.begin_transaction()
            for key, value in records.items():
                self._producer.produce(
                    topic, value, key, 0, on_delivery=lambda error, _: refused.append(error) if error else None
                )
            self._producer.commit_transaction(CALL_SECONDS)
        except KafkaException as error:
            raise self._failure(error, refused, time.monotonic() - began) from None

    def _failure(self, error: KafkaException, refused: Sequence[KafkaError], seconds: float) -> RescaleError:
        """Return the error to raise, after aborting the transaction if brokers have refused it.

        :param refused: why records were not delivered.
        :param seconds: how long the transaction took.
        """
        reason = reason_of(self._producer, error, self._what, self._trouble)
        if refused and not isinstance(reason, Fenced):
            reason = to_error(refused[0], self._what)
        if isinstance(reason, Fenced) and seconds * 1000 >= TRANSACTION_TIMEOUT_MS:
            reason = self._overdue(error.args[0])
        if isinstance(reason, Fenced | Outage):
            # librdkafka answers later calls with errors that hide this reason.
            self._ended = reason
            return reason
        # The abort fails if there is no transaction any more. Then the first error has the reason.
        with contextlib.suppress(KafkaException):
            self._producer.abort_transaction(CALL_SECONDS)
        return reason

    def _overdue(self, error: KafkaError) -> ClusterOutage:
        """Return the error to raise if the transaction was open for longer than its timeout.

        Perhaps no newer process has taken the id, and only the timeout has ended the transaction.
        """
        return ClusterOutage(
            self._what,
            found=f"{error.name()} after more than transaction.timeout.ms, {TRANSACTION_TIMEOUT_MS} ms",
            expected="a transaction of less than a second",
            remedy="Look whether a newer process has taken the id; if not, run again.",
        )
