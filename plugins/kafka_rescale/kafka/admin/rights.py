"""The rights of a connection's principal, as brokers tell them (KIP-430). Asking changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaError, TopicCollection
from kafka.admin import ACLOperation
from kafka.errors import GroupAuthorizationFailedError, TransactionalIdAuthorizationFailedError
from kafka.protocol.producer.transaction import EndTxnRequest

from kafka_rescale.core.acls.acls import IMPLYING, Operation, Resource
from kafka_rescale.core.acls.missing import Right
from kafka_rescale.core.roles import Role
from kafka_rescale.kafka.admin import consumer_groups
from kafka_rescale.kafka.admin.absent_topics import NOBODY, AbsentTopics, send
from kafka_rescale.kafka.admin.calls import has_code, value_of
from kafka_rescale.kafka.admin.group_members import asked
from kafka_rescale.kafka.admin.topic_reader import ABSENT

Operations = frozenset[Operation]

_OPERATIONS = {operation.value.replace("Configs", "_Configs").upper(): operation for operation in Operation}
_WRITE = frozenset({Operation.WRITE, Operation.DESCRIBE})
NOTHING: Operations = frozenset()
DESCRIBING = IMPLYING[Operation.DESCRIBE] | {Operation.DESCRIBE}


class RightsReader(AbsentTopics):
    """Asks for the rights of one principal."""

    def read(self, role: Role, names: Mapping[Resource, Iterable[str]]) -> list[Right]:
        """Return the rights on resources, whether or not the resources exist.

        A resource is left out if brokers can't tell the rights on it.

        :raises Outage: the brokers don't answer in time.
        """
        topics = self._topics(sorted(set(names[Resource.TOPIC])))
        found = {Resource.TOPIC: topics, Resource.GROUP: self._groups(names[Resource.GROUP])}
        writable = self._writable(list(names[Resource.TRANSACTIONAL_ID]))
        found[Resource.TRANSACTIONAL_ID] = {**writable}
        rights = [
            # A principal that may not even describe a resource lacks every right that implies describing it.
            Right(role, resource, name, NOTHING, DESCRIBING)
            if allowed is None
            else Right(role, resource, name, allowed)
            for resource, told in found.items()
            for name, allowed in told.items()
        ]
        untold = [name for name in names[Resource.TOPIC] if topics.get(name) is None]
        absent = [name for name in untold if name not in topics]
        usable = [name for name, allowed in writable.items() if allowed]
        return [*rights, *self._untold(role, untold), *self._absent(role, absent, usable)]

    def _untold(self, role: Role, names: list[str]) -> Iterator[Right]:
        """Yield the rights on topics that a description does not report."""
        for operation, forbidden in self.find_denied(names).items():
            for name in names:
                yield _single(role, name, operation, allowed=name not in forbidden)

    def _absent(self, role: Role, names: list[str], transactional_ids: list[str]) -> Iterator[Right]:
        """Yield the rights on topics that may be described but don't exist."""
        if not names:
            return
        unreadable = self.unreadable(names)
        for name in names:
            yield _single(role, name, Operation.READ, allowed=name not in unreadable)
        for transactional_id in transactional_ids[:1]:
            unwritable = self.unwritable(names, transactional_id)
            for name in names:
                yield _single(role, name, Operation.WRITE, allowed=name not in unwritable)

    def _topics(self, names: list[str]) -> dict[str, Operations | None]:
        """Return the allowed operations on topics. Topics that don't exist are left out.

        None stands for them if the principal must not describe the topic.
        """
        if not names:
            return {}
        answers: dict[str, Any] = self._settled(
            lambda client, seconds: client.describe_topics(
                TopicCollection(names), include_authorized_operations=True, request_timeout=seconds
            ),
            "topics",
        )
        found: dict[str, Operations | None] = {}
        for name, answer in answers.items():
            if has_code(answer, *ABSENT):
                continue
            if has_code(answer, KafkaError.TOPIC_AUTHORIZATION_FAILED):
                found[name] = None
                continue
            told = value_of(answer, f"topics {name!r}").authorized_operations
            if told is not None:
                found[name] = frozenset(_OPERATIONS[o.name] for o in told if o.name in _OPERATIONS)
        return found

    def _groups(self, names: Iterable[str]) -> dict[str, Operations | None]:
        """Return the allowed operations on groups, whether or not the groups exist.

        None stands for them if the principal must not describe the group.
        """
        groups = list(names)

        def ask(client: Any) -> dict[str, Operations | None]:
            return {name: _operations_on(client, name) for name in groups}

        return asked(self.connection, "groups", ask) if groups else {}

    def _writable(self, names: list[str]) -> dict[str, Operations]:
        """Return the rights on transactional ids. Ask for each by ending a transaction that does not exist.

        No request tells the rights on a transactional id. Describing an id needs a smaller right than writing.
        """
        forbidden = TransactionalIdAuthorizationFailedError.errno

        def ask(client: Any) -> dict[str, Operations]:
            requests = [
                EndTxnRequest(transactional_id=name, producer_id=NOBODY, producer_epoch=0, committed=False)
                for name in names
            ]
            codes = [client._manager.run(send, client, request).error_code for request in requests]
            return {n: NOTHING if c == forbidden else _WRITE for n, c in zip(names, codes, strict=True)}

        return asked(self.connection, "transactional ids", ask) if names else {}


def _single(role: Role, name: str, operation: Operation, *, allowed: bool) -> Right:
    asked_for = frozenset({operation})
    return Right(role, Resource.TOPIC, name, asked_for if allowed else NOTHING, asked_for)


def _operations_on(client: Any, group: str) -> Operations | None:
    try:
        codes = consumer_groups.operations(client, group)
    except GroupAuthorizationFailedError:
        return None
    names = (operation.name for operation in ACLOperation if operation.value in codes)
    return frozenset(_OPERATIONS[name] for name in names if name in _OPERATIONS)
