"""The producer of a task: outputs, changelog records and input offsets of a range are committed together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from confluent_kafka import KafkaError, Message

from kafka_rescale.core.errors import Finding, UnsafeState
from kafka_rescale.core.formats.record_batches import size_of
from kafka_rescale.core.formats.record_limits import RecordLimits
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.writing.producer import STUCK_SECONDS, UnitProducer
from kafka_rescale.kafka.writing.settings import BATCH_BYTES

ANY_PARTITION = -1
NOTHING, UNKNOWN = -1, -2
AFTERWARDS = "and run again."


class RefusedRecord(UnsafeState):
    """A record that can't be written. If records are written one by one, its place in the input is known."""


class TaskProducer(UnitProducer):
    """A producer that has fenced every older attempt at the same task, and knows where its changelogs end.

    :param transactional_id: of the application, its generation and the task.
    :param changelogs: topics whose positions are tracked.
    :raises Outage: the transaction coordinator does not answer.
    """

    def __init__(
        self, connection: KafkaConnection, transactional_id: str, changelogs: Collection[str] = ()
    ) -> None:
        self._positions: dict[str, int] = dict.fromkeys(changelogs, NOTHING)
        self._limits: Mapping[str, RecordLimits] = {}
        self._suspects: dict[str, Finding] = {}
        self._refused_topic = ""
        # With the settings of a copy, only failed deliveries would be reported, and offsets would stay unknown.
        told = {"delivery.report.only.error": False}
        super().__init__(
            connection, f"task {transactional_id}", transactional_id, BATCH_BYTES, STUCK_SECONDS, **told
        )

    def position(self, changelog: str) -> int | None:
        """Return the offset behind the last written record; None if no record was written.

        It is also None if the offset isn't known: a batch that had to be sent twice is acknowledged without an
        offset.
        """
        found = self._positions[changelog]
        return found if found >= 0 else None

    def wrote(self, changelog: str) -> bool:
        """Whether anything was written to a changelog."""
        return self._positions[changelog] != NOTHING

    def forget(self) -> None:
        """Note that a transaction was aborted: its records don't count."""
        self._positions = dict.fromkeys(self._positions, NOTHING)

    def produce(
        self, topic: str, value: Any, key: Any, partition: int, *, timestamp: int, headers: Any = None
    ) -> None:
        """Hand a record to the client.

        :raises RefusedRecord: the timestamp of the record can't be written.
        """
        if timestamp <= 0:
            raise RefusedRecord(
                f"a record for topic {topic!r}",
                found=f"timestamp {timestamp}, which the client library would replace by the present time",
                expected=f"a timestamp of at least 1 ms, to write to {topic}",
                remedy="Let the producers of the inputs set real timestamps, or delete the records without a "
                "timestamp; then run again.",
            )
        if topic in self._limits:
            size = size_of(key, value, headers or ())
            found = self._limits[topic].finding("", timestamp, size, AFTERWARDS, has_key=key is not None)
            if found is not None:
                self._suspects.setdefault(topic, found)
        super().produce(topic, value, key, partition, timestamp=timestamp, headers=headers)

    def look_closely(self, limits: Mapping[str, RecordLimits]) -> None:
        """Compare every record with the limits of its topic from now on.

        :param limits: by topic; an empty mapping ends the comparison.
        """
        self._limits, self._suspects = limits, {}

    def assert_accepted(self, what: str) -> None:
        """Wait until brokers have answered whether they take records that are beyond a limit.

        Brokers may take such records, because a record may be within the limit once it is compressed.

        :param what: the input record that the records were made from, for the error.
        :raises RefusedRecord: brokers have refused a record.
        """
        if not self._suspects:
            return
        self._bounded(self._flush, "flush")
        found = self._suspects.get(self._refused_topic) if self._refused is not None else None
        if found is not None:
            raise RefusedRecord.of(found.about(what))
        self._suspects = {}

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        super()._delivered(error, message)
        topic = message.topic() or ""
        if error is not None and self._refused is error:
            self._refused_topic = topic
        if error is None and topic in self._positions:
            offset = message.offset()
            self._positions[topic] = offset + 1 if offset is not None and offset >= 0 else UNKNOWN


def fence(connection: KafkaConnection, transactional_id: str) -> None:
    """Keep the present holder of a transactional id from committing any more, and abort its open transaction.

    :raises Outage: the transaction coordinator does not answer.
    """
    TaskProducer(connection, transactional_id).abort()
