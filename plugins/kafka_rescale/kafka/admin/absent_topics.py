"""Rights on topics that don't exist or must not be described; brokers have no direct answer for these.

Each question is a request that changes nothing: either brokers only validate it, or it must fail. Brokers check
the permission first, and their answer says whether it is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from kafka.protocol.consumer.fetch import FetchRequest
from kafka.protocol.producer.transaction import AddPartitionsToTxnRequest

from kafka_rescale.core.acls.acls import Operation
from kafka_rescale.kafka.admin.calls import AdminCalls, Ask, has_code
from kafka_rescale.kafka.admin.group_members import asked
from kafka_rescale.kafka.admin.topics import FORBIDDEN

NOBODY = 2**62
"""A producer id that no broker has assigned."""

BY_NAME = {"fetch": 12, "add": 3}
"""The newest versions of Fetch and AddPartitionsToTxn in which a client gives the names of topics."""

_CONFIG = ConfigEntry("retention.ms", "-1", incremental_operation=AlterConfigOpType.SET)


class AbsentTopics(AdminCalls):
    """Asks for the rights of one principal. It changes nothing, even if a topic has been created meanwhile."""

    def find_denied(self, names: Sequence[str]) -> dict[Operation, set[str]]:
        """Return, by operation, the topics for which the principal lacks the right to this operation.

        The operations are to create a topic, to describe its configs, and to alter its configs.
        """
        if not names:
            return {}
        topics = [NewTopic(name, 1, 1) for name in names]
        seen = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        set_ = [ConfigResource(ResourceType.TOPIC, name, incremental_configs=[_CONFIG]) for name in names]
        asks: dict[Operation, Ask[Any, Any]] = {
            Operation.CREATE: lambda client, seconds: client.create_topics(
                topics, validate_only=True, request_timeout=seconds
            ),
            Operation.DESCRIBE_CONFIGS: lambda client, seconds: client.describe_configs(
                seen, request_timeout=seconds
            ),
            Operation.ALTER_CONFIGS: lambda client, seconds: client.incremental_alter_configs(
                set_, validate_only=True, request_timeout=seconds
            ),
        }
        return {operation: self._forbidden(ask, f"rights to {operation}") for operation, ask in asks.items()}

    def unreadable(self, names: Sequence[str]) -> set[str]:
        """Return the topics that this principal may not read."""
        partition = FetchRequest.FetchTopic.FetchPartition
        topics = [
            FetchRequest.FetchTopic(
                topic=name, partitions=[partition(partition=0, fetch_offset=0, partition_max_bytes=1)]
            )
            for name in names
        ]
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=topics, forgotten_topics_data=[], max_version=BY_NAME["fetch"]
        )
        answer = self._answer(request)
        codes = {t.topic: t.partitions[0].error_code for t in answer.responses}
        return {name for name, code in codes.items() if code == KafkaError.TOPIC_AUTHORIZATION_FAILED}

    def unwritable(self, names: Sequence[str], transactional_id: str) -> set[str]:
        """Return the topics that this principal may not write to.

        :param transactional_id: a transactional id that this principal may use. No producer needs to have it.
        """
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=NOBODY,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[topic(name=name, partitions=[0]) for name in names],
            max_version=BY_NAME["add"],
        )
        answer = self._answer(request)
        codes = {
            t.name: t.results_by_partition[0].partition_error_code for t in answer.results_by_topic_v3_and_below
        }
        return {name for name, code in codes.items() if code == KafkaError.TOPIC_AUTHORIZATION_FAILED}

    def _answer(self, request: Any) -> Any:
        return asked(self.connection, "topics", lambda client: client._manager.run(send, client, request))

    def _forbidden(self, ask: Ask[Any, Any], what: str) -> set[str]:
        answers = self._settled(ask, what).items()
        return {getattr(key, "name", key) for key, answer in answers if has_code(answer, *FORBIDDEN)}


async def send(client: Any, request: Any) -> Any:
    """Send a request to some broker."""
    return await client._manager.send(request)
