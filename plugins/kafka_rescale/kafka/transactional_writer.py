"""Small transactions on one partition by one transactional id, of which only the newest holder gets through."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, Producer

from kafka_rescale.core.errors import Fenced, RescaleError
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.failures import ConnectionTrouble, fatal_error, to_error

CALL_SECONDS = 20.0
TRANSACTION_TIMEOUT_MS = 10_000
"""A writer that dies within a transaction holds up every reader for that long."""

MESSAGE_MAX_BYTES = 10 * 1024 * 1024


class TransactionalWriter:
    """A producer that has fenced every earlier holder of its transactional id.

    :param transactional_id: whoever was given it last may write.
    :raises Outage: the transaction coordinator doesn't answer.
    """

    def __init__(self, connection: KafkaConnection, transactional_id: str) -> None:
        self._what = f"transactional.id {transactional_id!r}"
        self._trouble = ConnectionTrouble(connection.servers)
        self._fenced: Fenced | None = None
        settings = {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "message.max.bytes": MESSAGE_MAX_BYTES,
            "compression.type": "gzip",
            "linger.ms": 0,
        }
        try:
            self._producer = Producer(connection.client(**settings, error_cb=self._trouble))
            self._producer.init_transactions(CALL_SECONDS)
        except KafkaException as error:
            raise self._error(error) from None

    def write(self, topic: str, records: Mapping[str, bytes | None]) -> None:
        """Write all records to partition 0, or none.

        :param records: value per key; ``None`` deletes the key.
        :raises Fenced: somebody else has taken the transactional id.
        :raises Outage: the outcome is unknown: read before writing again. (Brokers of Kafka 4.3 also answer so,
            with UNKNOWN_SERVER_ERROR, when another producer takes the id during the commit.)
        """
        if self._fenced is not None:
            raise self._fenced
        refused: list[KafkaError] = []
        try:
            self._producer.begin_transaction()
            for key, value in records.items():
                self._producer.produce(
                    topic, value, key, 0, on_delivery=lambda error, _: refused.append(error) if error else None
                )
            self._producer.commit_transaction(CALL_SECONDS)
        except KafkaException as error:
            reason = self._error(error)
            if isinstance(reason, Fenced):
                # The producer is dead; librdkafka answers later calls with errors that hide why.
                self._fenced = reason
                raise reason from None
            # Fails if there is no transaction any more; the first error is the one that tells.
            with contextlib.suppress(KafkaException):
                self._producer.abort_transaction(CALL_SECONDS)
            raise (to_error(refused[0], self._what) if refused else reason) from None

    def _error(self, error: KafkaException) -> RescaleError:
        if hasattr(self, "_producer"):
            # Serves the error callback; raises the fatal error again if there was one.
            with contextlib.suppress(KafkaException):
                self._producer.poll(0)
        self._trouble.raise_if_refused()
        reason: KafkaError = error.args[0]
        if reason.code() == KafkaError._FATAL:
            # produce() only says that there was a fatal error.
            reason = fatal_error(self._producer, CALL_SECONDS) or reason
        return to_error(reason, self._what)
