"""Small transactions on one partition by one transactional id, of which only the newest holder gets through."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, Producer

from kafka_rescale.core.errors import Fenced, RescaleError
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.failures import ConnectionTrouble, typed

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
        :raises Fenced: somebody else has taken the transactional id; nothing was written.
        :raises Outage: the outcome is unknown: read before writing again.
        """
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
            if not isinstance(reason, Fenced):
                # Fails if the transaction is gone or the producer dead; the first error is the one that tells.
                with contextlib.suppress(KafkaException):
                    self._producer.abort_transaction(CALL_SECONDS)
            raise (
                typed(refused[0], self._what) if refused and not isinstance(reason, Fenced) else reason
            ) from None

    def _error(self, error: KafkaException) -> RescaleError:
        self._producer_events()
        self._trouble.raise_if_refused()
        return typed(error.args[0], self._what)

    def _producer_events(self) -> None:
        if hasattr(self, "_producer"):
            self._producer.poll(0)
