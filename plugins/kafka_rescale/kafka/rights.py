"""What the principal of a connection is allowed to do, as the brokers say (KIP-430); asking changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, TopicCollection
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType
from kafka.errors import TransactionalIdAuthorizationFailedError
from kafka.protocol.producer.transaction import EndTxnRequest

from kafka_rescale.core.acls import IMPLYING, Operation, Resource, Role
from kafka_rescale.core.preflight_acls import Right
from kafka_rescale.kafka.admin_calls import REQUEST_SECONDS, AdminCalls, has_code, value_of
from kafka_rescale.kafka.group_members import asked
from kafka_rescale.kafka.topic_reader import ABSENT

_OPERATIONS = {operation.value.replace("Configs", "_Configs").upper(): operation for operation in Operation}
_WRITE = frozenset({Operation.WRITE, Operation.DESCRIBE})
_CREATE = frozenset({Operation.CREATE})
NOTHING: frozenset[Operation] = frozenset()
DESCRIBING = IMPLYING[Operation.DESCRIBE] | {Operation.DESCRIBE}
DESCRIBING_CONFIGS = IMPLYING[Operation.DESCRIBE_CONFIGS] | {Operation.DESCRIBE_CONFIGS}
_FORBIDDEN = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
NOBODY = 2**62
"""A producer id that no broker has given out."""


class RightsReader(AdminCalls):
    """Asks for the rights of one principal."""

    def read(self, role: Role, names: Mapping[Resource, Iterable[str]]) -> list[Right]:
        """Return the rights on resources, existing or not; nothing where brokers can't tell.

        Of a topic that doesn't exist they tell only whether it may be described and created.

        :raises Outage: nobody answers.
        """
        topics = self._topics(sorted(set(names[Resource.TOPIC])))
        found = {Resource.TOPIC: topics, Resource.GROUP: self._groups(names[Resource.GROUP])}
        found[Resource.TRANSACTIONAL_ID] = self._writable(list(names[Resource.TRANSACTIONAL_ID]))
        rights = [
            # Whoever may not even describe it may do nothing that would allow to describe it.
            Right(role, resource, name, NOTHING, DESCRIBING)
            if allowed is None
            else Right(role, resource, name, allowed)
            for resource, told in found.items()
            for name, allowed in told.items()
        ]
        untold = [name for name in names[Resource.TOPIC] if topics.get(name) is None]
        rights += self._configs(role, [name for name in untold if name in topics])
        creatable = self._creatable(untold)
        rights += [
            Right(role, Resource.TOPIC, name, _CREATE if name in creatable else NOTHING, _CREATE)
            for name in untold
        ]
        return rights

    def _topics(self, names: list[str]) -> dict[str, frozenset[Operation] | None]:
        if not names:
            return {}
        return self._allowed(
            lambda: self._client.describe_topics(
                TopicCollection(names), include_authorized_operations=True, request_timeout=REQUEST_SECONDS
            ),
            "topics",
        )

    def _groups(self, names: Iterable[str]) -> dict[str, frozenset[Operation] | None]:
        found: dict[str, frozenset[Operation] | None] = {}
        for name in names:
            found |= self._allowed(
                lambda name=name: self._client.describe_consumer_groups(
                    [name], include_authorized_operations=True, request_timeout=REQUEST_SECONDS
                ),
                "group",
            )
        return found

    def _allowed(self, ask: Any, what: str) -> dict[str, frozenset[Operation] | None]:
        """Return the operations by name; None where describing is not allowed, nothing for what isn't there."""
        answers: dict[str, Any] = self._settled(ask, what)
        found: dict[str, frozenset[Operation] | None] = {}
        for name, answer in answers.items():
            if has_code(answer, *ABSENT, KafkaError.GROUP_ID_NOT_FOUND):
                continue
            if has_code(answer, *_FORBIDDEN):
                found[name] = None
                continue
            told = value_of(answer, f"{what} {name!r}").authorized_operations
            if told is not None:
                found[name] = frozenset(_OPERATIONS[o.name] for o in told if o.name in _OPERATIONS)
        return found

    def _configs(self, role: Role, names: Iterable[str]) -> Iterator[Right]:
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        if not resources:
            return
        answers = self._settled(
            lambda: self._client.describe_configs(resources, request_timeout=REQUEST_SECONDS), "configs of topics"
        )
        for resource, answer in answers.items():
            denied = has_code(answer, *_FORBIDDEN)
            yield Right(
                role,
                Resource.TOPIC,
                resource.name,
                NOTHING if denied else frozenset({Operation.DESCRIBE_CONFIGS}),
                DESCRIBING_CONFIGS if denied else frozenset({Operation.DESCRIBE_CONFIGS}),
            )

    def _creatable(self, names: Iterable[str]) -> set[str]:
        topics = [NewTopic(name, 1, 1) for name in names]
        if not topics:
            return set()
        asked_for: dict[str, Future[Any]] = self._client.create_topics(
            topics, validate_only=True, request_timeout=REQUEST_SECONDS
        )
        return {name for name, answer in self._once(asked_for).items() if not has_code(answer, *_FORBIDDEN)}

    def _writable(self, names: list[str]) -> dict[str, frozenset[Operation] | None]:
        """Ask by the end of a transaction that there is not: permission is what brokers look at first.

        No request tells the rights on a transactional id, and describing one takes less than writing.
        """
        forbidden = TransactionalIdAuthorizationFailedError.errno

        def ask(client: Any) -> dict[str, frozenset[Operation] | None]:
            requests = [
                EndTxnRequest(transactional_id=name, producer_id=NOBODY, producer_epoch=0, committed=False)
                for name in names
            ]
            codes = [client._manager.run(_send, client, request).error_code for request in requests]
            return {
                name: NOTHING if code == forbidden else _WRITE for name, code in zip(names, codes, strict=True)
            }

        return asked(self.connection, "transactional ids", ask) if names else {}


async def _send(client: Any, request: Any) -> Any:
    return await client._manager.send(request)
