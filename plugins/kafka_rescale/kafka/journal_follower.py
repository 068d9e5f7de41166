"""Following the journal and the lease at little cost, for a job that waits for a change of them."""

from __future__ import annotations

from types import TracebackType

from confluent_kafka import Consumer, KafkaError, TopicPartition

from kafka_rescale.core.control_records import Concern, Lease
from kafka_rescale.core.errors import ClusterOutage
from kafka_rescale.core.journal import Journal
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.control_topic import TOPIC
from kafka_rescale.kafka.error_classes import is_outage
from kafka_rescale.kafka.failures import to_error
from kafka_rescale.kafka.log_reader import SETTINGS
from kafka_rescale.kafka.waiting import poll_until

FIRST_SECONDS = 60.0


class JournalFollower:
    """Keeps one consumer at the end of the control topic; a new journal shows within a few ms.

    :param application: base name of the application.
    """

    def __init__(self, connection: KafkaConnection, application: str) -> None:
        self._journal_key = f"{application}/{Concern.JOURNAL}".encode()
        self._lease_key = f"{application}/{Concern.LEASE}".encode()
        self._journal: Journal | None = None
        self._lease: Lease | None = None
        self._at_end = False
        self._consumer = Consumer(connection.client(**SETTINGS))
        self._consumer.assign([TopicPartition(TOPIC, 0, 0)])

    def first(self) -> Journal | None:
        """Return the journal as it is now, having read all of the topic.

        :raises ClusterOutage: the end is not reached in time.
        """

        def read() -> bool:
            self.latest()
            return self._at_end

        poll_until(
            read,
            seconds=FIRST_SECONDS,
            otherwise=lambda: ClusterOutage(
                f"topic {TOPIC!r}", found="no end", expected="to read up to the end", remedy="Run again."
            ),
        )
        return self._journal

    def latest(self) -> Journal | None:
        """Return the newest journal that has arrived, without waiting."""
        while message := self._consumer.poll(0):
            error = message.error()
            if error is None:
                self._take(message.key(), message.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                self._at_end = True
            elif not is_outage(error):
                raise to_error(error, f"topic {TOPIC!r}")
        return self._journal

    def holder(self) -> str:
        """Return who holds the lease, from what has arrived, without waiting; empty if nobody does."""
        self.latest()
        return self._lease.holder if self._lease else ""

    def _take(self, key: str | bytes | None, value: bytes | None) -> None:
        if key == self._journal_key:
            self._journal = None if value is None else Journal.model_validate_json(value)
        elif key == self._lease_key:
            self._lease = None if value is None else Lease.model_validate_json(value)

    def __enter__(self) -> JournalFollower:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()
