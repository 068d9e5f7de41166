"""Descriptions of topics, as brokers give them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, TopicCollection
from confluent_kafka.admin import ConfigResource, ConfigSource, ResourceType

from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import ClusterOutage, ClusterTimedOut, RescaleError
from kafka_rescale.core.topology.topic_names import is_topic_name
from kafka_rescale.kafka.admin.calls import SETTLE_SECONDS, AdminCalls, Ask, finished, has_code, value_of
from kafka_rescale.kafka.client.failures import named_reason
from kafka_rescale.kafka.client.waiting import poll_until

ABSENT = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)


class TopicReader(AdminCalls):
    """The part of ``ClusterAdmin`` that describes topics."""

    def list_topics(self) -> set[str]:
        """Return the names of all topics.

        :raises Outage: the brokers don't answer in time.
        """
        return set(self._metadata("list of topics").topics)

    def broker_count(self) -> int:
        """Return the number of brokers of the cluster: brokers that are up, and brokers that have replicas.

        If only brokers that are up counted, a new topic would have too few replicas for ever, just because a
        broker was restarting when the topic was created.
        """
        return len(_brokers_of(self._metadata("cluster")))

    def is_whole(self) -> bool:
        """Whether every broker of the cluster is up."""
        found = self._metadata("cluster")
        return _brokers_of(found) == set(found.brokers)

    def under_replicated(self, names: Iterable[str]) -> list[str]:
        """Return the partitions of some topics that have fewer replicas in sync than replicas.

        :raises Outage: the brokers don't answer in time.
        """
        return [
            f"{name}-{partition.id}"
            for name, topic in sorted(self._described(names, "replicas of topics").items())
            for partition in topic.partitions
            if len(partition.isr) < len(partition.replicas)
        ]

    def topic_ids(self, names: Iterable[str]) -> dict[str, str]:
        """Return the ids by topic, without names that don't exist or that no topic can have.

        :raises Outage: the brokers don't answer in time.
        """
        return {name: str(topic.topic_id) for name, topic in self._described(names).items()}

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        """Return the topics by name, without names that don't exist or that no topic can have.

        :raises Outage: the brokers don't answer in time.
        """
        topics = self._described(names)
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
        if not resources:
            return {}
        configs = self._present(
            lambda client, seconds: client.describe_configs(resources, request_timeout=seconds),
            "configs of topics",
        )
        by_name = {resource.name: entries for resource, entries in configs.items()}
        return {name: _description(topic, by_name[name]) for name, topic in topics.items() if name in by_name}

    def existing_topics(
        self,
        names: Iterable[str],
        *,
        seconds: float = SETTLE_SECONDS,
        otherwise: Callable[[set[str]], RescaleError] | None = None,
    ) -> dict[str, TopicDescription]:
        """Return descriptions of topics that are known to exist, by name.

        A broker that has just started may not know a topic, so this asks again.

        :param seconds: how long to ask.
        :param otherwise: gets the topics that are still unknown then, and returns the error to raise.
        :raises ClusterOutage: brokers don't know one of the topics for so long, and there is no other error.
        """
        wanted = set(names)
        found: dict[str, TopicDescription] = {}

        def complete() -> bool:
            found.update(self.describe_topics(wanted))
            if unknown := wanted - found.keys():
                self._ask_another()
            return not unknown

        error = otherwise or not_known
        poll_until(complete, seconds=seconds, otherwise=lambda: error(wanted - found.keys()))
        return found

    def partition_counts(self, names: Iterable[str]) -> dict[str, int]:
        """Return the number of partitions by topic, without names that don't exist or that no topic can have.

        :raises Outage: the brokers don't answer in time.
        """
        return {name: len(topic.partitions) for name, topic in self._described(names).items()}

    def _described(self, names: Iterable[str], what: str = "topics") -> dict[str, Any]:
        if not (wanted := sorted(filter(is_topic_name, set(names)))):
            return {}
        return self._present(
            lambda client, seconds: client.describe_topics(TopicCollection(wanted), request_timeout=seconds),
            what,
        )

    def _metadata(self, what: str) -> Any:
        """Return the metadata of the cluster. Any broker has it, so this does not wait for a controller."""
        return self._read(
            lambda client, seconds: {"": finished(lambda: client.list_topics(timeout=seconds))}, what
        )[""]

    def _present(self, ask: Ask[Any, Any], what: str) -> dict[Any, Any]:
        answers = self._settled(ask, what)
        return {key: value_of(a, what) for key, a in answers.items() if not has_code(a, *ABSENT)}

    def _topic(self, name: str) -> TopicDescription | None:
        return self.describe_topics([name]).get(name)

    def _wait_for(self, name: str, condition: Callable[[TopicDescription], bool], wanted: str) -> None:
        """Wait until a change shows. Brokers answer from metadata that may be a little old."""

        def shows() -> bool:
            topic = self._topic(name)
            return topic is not None and condition(topic)

        poll_until(
            shows, seconds=SETTLE_SECONDS, otherwise=lambda: not_seen(name, f"to have {wanted}", SETTLE_SECONDS)
        )


def _brokers_of(metadata: Any) -> set[int]:
    """Return the brokers that are up, and those that have replicas."""
    partitions = [p for topic in metadata.topics.values() for p in topic.partitions.values()]
    return set(metadata.brokers).union(*(p.replicas for p in partitions))


def not_seen(name: str, change: str, seconds: float) -> ClusterOutage:
    """Return the error for a change that doesn't show in time.

    :param change: the change of the topic, as an infinitive.
    """
    return ClusterTimedOut(
        f"topic {name!r} {change}, as the brokers describe it",
        seconds=seconds,
        remedy="Run again: what has been done is found and kept.",
    )


def not_known(names: Iterable[str]) -> ClusterOutage:
    """Return the error for topics that should exist, and that no broker knows."""
    return ClusterOutage(
        f"topic {', '.join(sorted(names))}",
        found=f"brokers that have not known it for {SETTLE_SECONDS:.0f} s",
        expected="a topic that exists",
        remedy="Find out who has deleted it. A broker that has just started may also answer so: run again.",
    )


def assert_all_listed(offsets: PartitionOffsets, counts: Mapping[str, int]) -> None:
    """Check that a listing has all partitions of topics that have just grown.

    Some brokers may still answer from what they knew before. Records in the new partitions would seem to be lost.

    :param counts: partitions by topic.
    :raises ClusterOutage: partitions are not there yet.
    """
    if lacking := {topic: n for topic, n in counts.items() if len(offsets.get(topic, {})) < n}:
        topic, count = min(lacking.items())
        raise ClusterOutage(
            f"topic {topic!r}",
            found=f"offsets of {len(offsets.get(topic, {}))} partitions",
            expected=f"those of {count}: it has just grown, and a broker does not know that yet",
            remedy="Run again.",
        )


def too_few_brokers(name: str, answer: KafkaError) -> ClusterOutage:
    """Return the error for a topic whose replicas can't be placed while a broker restarts."""
    return ClusterOutage(
        f"topic {name!r}",
        found=named_reason(answer),
        expected="as many brokers as the topic has replicas",
        remedy="Run again when every broker is up: a broker that shuts down is given no replicas.",
    )


def _description(topic: Any, entries: Any) -> TopicDescription:
    configs = {name: entry.value for name, entry in entries.items() if entry.value is not None}
    dynamic = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return TopicDescription(
        name=topic.name,
        partitions=len(topic.partitions),
        replication_factor=min((len(p.replicas) for p in topic.partitions), default=0),
        configs=configs,
        overrides={name: value for name, value in configs.items() if entries[name].source == dynamic},
        topic_id=str(topic.topic_id),
    )
