"""A cluster whose first broker has just started: it knows no topic yet. The next client finds another broker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import ListOffsetsResultInfo, OffsetSpec
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.offsets import EARLIEST, SPECS
from kafka_rescale.kafka.client.connection import KafkaConnection


class YoungBroker(ClusterAdmin):
    """The admin client of such a cluster.

    :param ends: ends of the topics that exist; a test may change them. All logs begin at 0.
    :param young: what the first broker tells instead: partitions by topic.
    :ivar ids: ids of topics that were made anew; a test may change them.
    """

    def __init__(self, ends: PartitionOffsets, young: dict[str, int] | None = None) -> None:
        super().__init__(KafkaConnection({"bootstrap.servers": "127.0.0.1:9"}))
        self.ends, self._young = ends, young
        self.ids: dict[str, str] = {}

    def list_topics(self) -> set[str]:
        """Return the names of all topics."""
        return set(self.ends)

    def partition_counts(self, names: Iterable[str]) -> dict[str, int]:
        """Return the number of partitions by topic."""
        known = {topic: len(of) for topic, of in self.ends.items()} if self._young is None else self._young
        return {name: known[name] for name in names if name in known}

    def topic_ids(self, names: Iterable[str]) -> dict[str, str]:
        """Return the ids by topic."""
        return {name: self.ids.get(name, "first") for name in self.partition_counts(names)}

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        """Return the topics by name."""
        ids = self.topic_ids(names)
        return {
            name: TopicDescription(name, count, 1, topic_id=ids[name])
            for name, count in self.partition_counts(names).items()
        }

    def is_absent(self, name: str) -> bool:
        """Return whether a topic really does not exist: the controller knows."""
        return name not in self.ends

    def _ask_another(self) -> None:
        self._young = None

    def _answers(
        self, wanted: Sequence[TopicPartition], spec: OffsetSpec, isolation: IsolationLevel
    ) -> dict[TopicPartition, ListOffsetsResultInfo]:
        def offset(at: TopicPartition) -> Any:
            end = self.ends[at.topic][at.partition]
            return ListOffsetsResultInfo(0 if spec is SPECS[EARLIEST] else end, -1, -1)

        return {at: offset(at) for at in wanted}
