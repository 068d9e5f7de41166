"""What one call of ``consume`` returned, sorted by source partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, Message

from kafka_rescale.core.cluster import TopicPartition


@dataclass
class Batches:
    """Records to write, and the offsets up to which their partitions hold no further records.

    :param records: per source partition, in the order of their offsets.
    :param ends: offsets (exclusive) up to which only markers and aborted records follow the last record.
    :param errors: errors that the consumer reported about a partition.
    """

    records: dict[TopicPartition, list[Message]] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    errors: dict[TopicPartition, KafkaError] = field(default_factory=dict)

    @classmethod
    def of(cls, messages: Iterable[Message], limits: Mapping[TopicPartition, int]) -> Batches:
        """Sort messages, and drop those behind their partition's limit (exclusive)."""
        batches = cls()
        for message in messages:
            source = (message.topic() or "", message.partition() or 0)
            error = message.error()
            if error is None:
                batches.records.setdefault(source, []).append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                batches.ends[source] = message.offset() or 0
            else:
                batches.errors[source] = error
        for source, limit in limits.items():
            batches._cut(source, limit)
        return batches

    def _cut(self, source: TopicPartition, limit: int) -> None:
        records = self.records.get(source, [])
        if records and (records[-1].offset() or 0) >= limit:
            self.records[source] = [m for m in records if (m.offset() or 0) < limit]
            self.ends[source] = limit
        if source in self.ends:
            self.ends[source] = min(limit, self.ends[source])

    @property
    def heard(self) -> set[TopicPartition]:
        """The partitions that have sent records or their end; an error doesn't count."""
        return {*self.records, *self.ends}
