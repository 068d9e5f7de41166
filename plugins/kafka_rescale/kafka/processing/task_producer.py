"""The producer of a task: outputs, changelog records and input offsets of a range are committed together."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from confluent_kafka import KafkaError, Message

from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.writing.producer import STUCK_SECONDS, UnitProducer
from kafka_rescale.kafka.writing.settings import BATCH_BYTES

ANY_PARTITION = -1
NOTHING, UNKNOWN = -1, -2


class TaskProducer(UnitProducer):
    """A producer that has fenced every older attempt at the same task, and knows where its changelogs end.

    :param transactional_id: of the application, its generation and the task.
    :param changelogs: topics of which the positions are wanted.
    :raises Outage: the transaction coordinator does not answer.
    """

    def __init__(
        self, connection: KafkaConnection, transactional_id: str, changelogs: Collection[str] = ()
    ) -> None:
        self._positions: dict[str, int] = dict.fromkeys(changelogs, NOTHING)
        # Otherwise only failed deliveries are reported, and nobody knows the offsets of the others.
        told = {"delivery.report.only.error": False}
        super().__init__(
            connection, f"task {transactional_id}", transactional_id, BATCH_BYTES, STUCK_SECONDS, **told
        )

    def position(self, changelog: str) -> int | None:
        """Return the offset behind the last record that was written; None if there is none, or it isn't known.

        A batch that had to be sent twice is acknowledged without an offset.
        """
        found = self._positions[changelog]
        return found if found >= 0 else None

    def wrote(self, changelog: str) -> bool:
        """Whether anything was written to a changelog."""
        return self._positions[changelog] != NOTHING

    def forget(self) -> None:
        """Take notice that a transaction was aborted: what it had written counts for nothing."""
        self._positions = dict.fromkeys(self._positions, NOTHING)

    def produce(
        self, topic: str, value: Any, key: Any, partition: int, *, timestamp: int, headers: Any = None
    ) -> None:
        """Hand a record to the client.

        :raises UnsafeState: its timestamp can't be written.
        """
        if timestamp <= 0:
            raise UnsafeState(
                f"a record for topic {topic!r}",
                found=f"timestamp {timestamp}, which the client library would replace by the present time",
                expected="a timestamp of at least 1 ms",
                remedy="Let the producers of the inputs set real timestamps.",
            )
        super().produce(topic, value, key, partition, timestamp=timestamp, headers=headers)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        super()._delivered(error, message)
        topic = message.topic()
        if error is None and topic in self._positions:
            offset = message.offset()
            self._positions[topic] = offset + 1 if offset is not None and offset >= 0 else UNKNOWN


def fence(connection: KafkaConnection, transactional_id: str) -> None:
    """Let whoever has this id commit nothing any more; what it has open is aborted.

    :raises Outage: the transaction coordinator does not answer.
    """
    TaskProducer(connection, transactional_id).abort()
