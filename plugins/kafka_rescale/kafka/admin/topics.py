"""Topics: create, grow, configure, delete. Every change is idempotent and checked afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import ClusterOutage, UnsafeState
from kafka_rescale.kafka.admin.calls import CHANGE_SECONDS, has_code, is_unknown, lacks_brokers, value_of
from kafka_rescale.kafka.admin.growing_topics import GrowingTopics
from kafka_rescale.kafka.admin.topic_reader import ABSENT, not_seen, too_few_brokers
from kafka_rescale.kafka.client.waiting import poll_until, within

FORBIDDEN = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
UNKNOWN_SECONDS, UNKNOWN_PAUSE_SECONDS = 3.0, 0.5
"""How long to ask brokers for a topic that perhaps does not exist: one that has just started knows it by then."""


class TopicAdmin(GrowingTopics):
    """The part of ``ClusterAdmin`` that changes topics."""

    def ensure_topic(
        self, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
    ) -> bool:
        """Create a topic, or bring the configs of an existing one in line; return whether it was created.

        :param configs: all overrides that the topic must have. Other overrides of the topic stay as they are.
        :raises UnsafeState: the topic exists with another number of partitions.
        :raises ClusterOutage: the topic can't be created in time. This waits for a broker that restarts.
        """
        created = False
        lacking: list[KafkaError] = []
        topic = NewTopic(name, partitions, replication_factor, config=dict(configs))

        def present() -> TopicDescription | None:
            nonlocal created
            if (known := self._topic(name)) is not None:
                return known
            answer = self._once(lambda client, seconds: client.create_topics([topic], request_timeout=seconds))[
                name
            ]
            if lacks_brokers(answer) and replication_factor <= self.broker_count():
                lacking.append(answer)
                return None
            if not is_unknown(answer) and not has_code(answer, KafkaError.TOPIC_ALREADY_EXISTS):
                value_of(answer, f"topic {name!r}")
                self._wait_for(name, lambda topic: topic.partitions == partitions, f"{partitions} partitions")
            # If the answer to an earlier request of ours got lost, that request may have created the topic. It
            # counts as a creation even if the answer now is that the topic exists.
            created = created or not has_code(answer, KafkaError.TOPIC_ALREADY_EXISTS)
            return self._topic(name)

        def not_created() -> ClusterOutage:
            return (
                too_few_brokers(name, lacking[-1]) if lacking else not_seen(name, "to be created", CHANGE_SECONDS)
            )

        found = poll_until(present, seconds=CHANGE_SECONDS, otherwise=not_created)
        assert found is not None, "poll_until returns what is true"
        if found.partitions != partitions:
            raise UnsafeState(
                f"topic {name!r}",
                found=f"{found.partitions} partitions",
                expected=f"{partitions} partitions, or no such topic yet",
                remedy="Find out who made it, and whether it holds state. Choose the count that it has if that is "
                "right; delete it only if it is left over from an abandoned expansion and nothing reads it.",
            )
        self.alter_configs(name, {k: v for k, v in configs.items() if found.overrides.get(k) != v})
        return created

    def is_absent(self, name: str) -> bool:
        """Return whether a topic that some broker doesn't know really does not exist.

        This asks for a creation that is only validated. The controller answers, and it knows every topic. If the
        principal must not create this topic, the controller tells nothing. Then this asks brokers for some
        seconds, each time with a new client.

        :raises ClusterOutage: no controller answers.
        """
        topic = NewTopic(name, 1, 1)
        answers = self._settled(
            lambda client, seconds: client.create_topics([topic], validate_only=True, request_timeout=seconds),
            f"topic {name!r}",
        )
        if has_code(answers[name], *FORBIDDEN):
            return not self._shows(name)
        return not has_code(answers[name], KafkaError.TOPIC_ALREADY_EXISTS)

    def absent_of(self, names: Iterable[str]) -> set[str]:
        """Return those topics that really do not exist. The others exist, although a broker may not know them yet.

        :raises ClusterOutage: no controller answers.
        """
        wanted = set(names)
        return {name for name in wanted - self.partition_counts(wanted).keys() if self.is_absent(name)}

    def _shows(self, name: str) -> bool:
        left = within(UNKNOWN_SECONDS)
        while not self.partition_counts([name]):
            if left() <= 0:
                return False
            self._ask_another()
            time.sleep(UNKNOWN_PAUSE_SECONDS)
        return True

    def alter_configs(self, topic: str, changes: Mapping[str, str | None]) -> None:
        """Set overrides of a topic, and wait until they show.

        :param changes: value by override; ``None`` deletes the override.
        :raises UnsafeState: the brokers refuse a config.
        """
        if not changes:
            return
        entries = [
            ConfigEntry(
                key,
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for key, value in changes.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self._read(
            lambda client, seconds: client.incremental_alter_configs([resource], request_timeout=seconds),
            "configs of",
            seconds=CHANGE_SECONDS,
        )
        self._wait_for(
            topic, lambda found: all(found.overrides.get(k) == v for k, v in changes.items()), "the new configs"
        )

    def delete_topics(self, names: Iterable[str]) -> None:
        """Delete the topics that exist, and wait until they are gone.

        :raises Outage: topics are still there after ``CHANGE_SECONDS``.
        """
        wanted = sorted(set(names))
        left: set[str] = set()

        def gone() -> bool:
            left.clear()
            left.update(self.describe_topics(wanted))
            return not left

        def deleted() -> bool:
            if gone():
                return True
            answers = self._once(
                lambda client, seconds: client.delete_topics(sorted(left), request_timeout=seconds)
            )
            for name, answer in answers.items():
                if not is_unknown(answer) and not has_code(answer, *ABSENT):
                    value_of(answer, f"topic {name!r}")
            return gone()

        poll_until(
            deleted,
            seconds=CHANGE_SECONDS,
            otherwise=lambda: not_seen(", ".join(left), "to be deleted", CHANGE_SECONDS),
        )

    def delete_records(self, before: PartitionOffsets) -> None:
        """Delete the records of some partitions before an offset.

        :param before: topic → partition → first offset to keep.
        :raises UnsafeState: brokers refuse it, for example for a topic that is only compacted.
        """
        wanted = [TopicPartition(t, p, o) for t, offsets in before.items() for p, o in offsets.items()]
        if wanted:
            self._read(
                lambda client, seconds: client.delete_records(wanted, request_timeout=seconds), "records of"
            )
